"""An incident: a service is down; its breaker opens, somebody decides, somebody allows the restart, all is well."""
