"""Two hundred texts that somebody would like to see run."""

SAID = "window.ran=1"
TEMPLATES = (
    "<script>{}</script>",
    "<img src=x onerror={}>",
    "<svg onload={}>",
    "<svg><script>{}</script></svg>",
    "<canary-element></canary-element><b onclick={}>x</b>",
    "<iframe srcdoc='<script>parent.{}</script>'>",
    "<body onload={}>",
    "<details open ontoggle={}>",
    "<input autofocus onfocus={}>",
    "<a href='javascript:{}'>x</a>",
    "javascript:{}",
    "data:text/html,<script>{}</script>",
    "'-{}-'",
    "${{{}}}",
    "{{{{constructor.constructor('{}')()}}}}",
    "<style>@import 'https://example.test/{}';</style>",
    "<link rel=stylesheet href=https://example.test/{}>",
    "<meta http-equiv=refresh content='0;url=javascript:{}'>",
    "<math><mtext></mtext><img src=x onerror={}></math>",
    "<template><img src=x onerror={}></template>",
)
WRAPPINGS = (
    "{}",
    "\"'>{}",
    "</script>{}",
    "-->{}",
    "]]>{}",
    "</textarea>{}",
    "</title>{}",
    "\u202e{}",
    "<!--{}",
    "{}\u200b&lt;{}",
)
PAYLOADS = [wrap.replace("{}", template.format(SAID)) for wrap in WRAPPINGS for template in TEMPLATES]
