# The engine in a container: docker build -t everstep . && docker run -p 7717:7717 -v everstep:/work everstep
FROM python:3.13-slim AS build
COPY . /src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /src && cp /src/constraints.txt /wheels

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir -c /wheels/constraints.txt "$(echo /wheels/everstep-*.whl)[mcp,otel,postgres]" && rm -r /wheels
RUN useradd --create-home --uid 10001 everstep && install -d -o everstep /work
USER everstep
WORKDIR /work
VOLUME /work
EXPOSE 7717
HEALTHCHECK CMD python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:7717/v1/health')"
# Beyond the loopback something with TLS has to stand in front of it; this flag says that it does.
CMD ["everstep", "serve", "--host", "0.0.0.0", "--behind-tls-proxy"]
