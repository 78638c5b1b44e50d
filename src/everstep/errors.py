"""What a caller may catch: the public spelling of `domain/errors`. No code."""

from everstep.domain.errors import (
    Conflict,
    EngineClosed,
    EverstepError,
    LimitExceeded,
    NotAllowed,
    NotFound,
    PlanError,
    RequestError,
    SettingsError,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreRefused,
    Unavailable,
    Validation,
)

__all__ = [
    "Conflict",
    "EngineClosed",
    "EverstepError",
    "LimitExceeded",
    "NotAllowed",
    "NotFound",
    "PlanError",
    "RequestError",
    "SettingsError",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "StoreRefused",
    "Unavailable",
    "Validation",
]
