"""Events, states and audits as text for people, as JSON, and as a page."""
