"""Mail: the account, the dialogue with its server, what may not go out, and what is known of a message that went."""
