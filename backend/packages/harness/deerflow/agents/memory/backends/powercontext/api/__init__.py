"""PowerContext's HTTP API, in both generations: what is asked, and what is read of the replies."""
