"""Secrets as they stand in logs: each a text, and the part of it that nobody else may see.

None is real: they are put together here, so that no scanner of this repository takes them for keys.
"""

import base64

HEX, ABC, MIX = "0123456789abcdef" * 12, "abcdefghijklmnopqrstuvwxyz" * 6, "aB3dE5gH7jK9mN1pQ2sT4vW6xY8z" * 6
UP = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" * 3
B64 = base64.b64encode(MIX.encode()).decode()
PHRASE = "correct horse battery staple"


def _shape(prefix: str, alphabet: str, length: int) -> tuple[str, str]:
    token = prefix + alphabet[:length]
    return f"GET /v1/items with {token}, then 401", token


TOKENS = {
    "openai": _shape("sk-" + "proj-", MIX, 80),
    "anthropic": _shape("sk-" + "ant-api03-", MIX, 95),
    "stripe": _shape("sk_" + "live_", MIX, 24),
    "stripe_restricted": _shape("rk_" + "test_", MIX, 24),
    "stripe_webhook": _shape("whsec" + "_", MIX, 32),
    "github": _shape("gh" + "p_", MIX, 36),
    "github_fine": _shape("github_" + "pat_", MIX, 82),
    "github_app": _shape("gh" + "s_", MIX, 36),
    "gitlab": _shape("gl" + "pat-", MIX, 20),
    "gitlab_runner": _shape("gl" + "rt-", MIX, 20),
    "slack_bot": _shape("xo" + "xb-123456789012-", MIX, 24),
    "slack_app": _shape("xa" + "pp-1-A0123456789-123456789012-", HEX, 64),
    "aws": _shape("AK" + "IA", UP, 16),
    "aws_session": _shape("AS" + "IA", UP, 16),
    "google": _shape("AI" + "za", MIX, 35),
    "google_oauth": _shape("ya" + "29.", MIX, 60),
    "google_secret": _shape("GO" + "CSPX-", MIX, 28),
    "huggingface": _shape("hf" + "_", ABC, 34),
    "npm": _shape("np" + "m_", MIX, 36),
    "pypi": _shape("py" + "pi-AgEIcHlwaS5vcmc", MIX, 60),
    "docker": _shape("dck" + "r_pat_", MIX, 27),
    "sendgrid": _shape("S" + "G.", f"{MIX[:22]}.{MIX[:43]}", 66),
    "twilio": _shape("S" + "K", HEX, 32),
    "mailgun": _shape("key" + "-", HEX, 32),
    "mailchimp": _shape("", f"{HEX[:32]}-us12", 37),
    "digitalocean": _shape("dop" + "_v1_", HEX, 64),
    "databricks": _shape("da" + "pi", HEX, 32),
    "shopify": _shape("shp" + "at_", HEX, 32),
    "square": _shape("sq0" + "atp-", MIX, 22),
    "linear": _shape("lin" + "_api_", MIX, 40),
    "notion": _shape("nt" + "n_12345678901", MIX, 35),
    "figma": _shape("fi" + "gd_", MIX, 40),
    "vault": _shape("hv" + "s.", MIX, 95),
    "terraform": _shape("", f"{ABC[:14]}.atlasv1.{MIX[:64]}", 87),
    "grafana": _shape("gl" + "sa_", f"{MIX[:32]}_{HEX[:8]}", 41),
    "postman": _shape("PM" + "AK-", f"{HEX[:24]}-{HEX[:34]}", 59),
    "atlassian": _shape("AT" + "ATT3xFfGF0", MIX, 100),
    "doppler": _shape("dp" + ".pt.", MIX, 43),
    "sentry": _shape("sntr" + "ys_", MIX, 80),
    "1password": _shape("op" + "s_eyJ", MIX, 160),
    "groq": _shape("gs" + "k_", MIX, 52),
    "xai": _shape("xa" + "i-", MIX, 80),
    "replicate": _shape("r8" + "_", MIX, 37),
    "nvidia": _shape("nv" + "api-", MIX, 64),
    "langsmith": _shape("lsv2" + "_pt_", f"{HEX[:32]}_{HEX[:10]}", 43),
    "pinecone": _shape("pc" + "sk_", MIX, 60),
    "tailscale": _shape("ts" + "key-auth-", MIX, 30),
    "azure": _shape("", f"{MIX[:3]}8Q~{MIX[:34]}", 40),
    "telegram": _shape("", f"1234567890:A{MIX[:34]}", 46),
    "discord": _shape("", f"M{MIX[:23]}.{MIX[:6]}.{MIX[:27]}", 60),
    "age": _shape("AGE-" + "SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2, 58),
    "new_relic": _shape("NR" + "AK-", UP, 27),
    "jwt": _shape("ey" + "JhbGciOiJI.", f"eyJzdWIiOiIx{MIX[:20]}.{MIX[:30]}", 63),
    "bcrypt": _shape("$2" + "b$12$", MIX, 53),
}
"""What services mark as theirs."""

NAMED = {
    "quoted": (f'password = "{PHRASE}"', PHRASE),
    "single": (f"db_password: '{PHRASE}'", PHRASE),
    "json": (f'{{"api_key": "{PHRASE}", "user": "ann"}}', PHRASE),
    "nested": (rf'{{"body": "{{\"clientSecret\": \"{PHRASE}\"}}"}}', PHRASE),
    "nested_twice": (rf"{{\\\"token\\\": \\\"{PHRASE}\\\"}}", PHRASE),
    "escaped_quote": (r'"password": "ab\"cd ef gh", "x": 1', r"cd ef gh"),
    "env": ("export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI/K7MDENG"),
    "env_key": (f"DATADOG_APP_KEY={HEX[:40]}", HEX[:40]),
    "yaml": ("  passphrase: opensesame2", "opensesame2"),
    "camel": (f'accountKey: "{B64[:44]}"', B64[:44]),
    "connection": (f"Server=db;User=ann;Password=hunter22;AccountKey={B64[:40]};", "hunter22"),
    "azure_key": (f"DefaultEndpointsProtocol=https;AccountKey={B64[:86]}==;", B64[:86]),
    "npmrc": ("//registry.npmjs.org/:_authToken=abcd-efgh-1234", "abcd-efgh-1234"),
    "docker_auth": (f'"auth": "{B64[:40]}"', B64[:40]),
    "wireguard": (f"PrivateKey = {B64[:43]}=", B64[:43]),
    "kubeconfig": (f"client-key-data: {B64[:80]}", B64[:80]),
    "pair": ('["api_key", "open sesame 42"]', "open sesame 42"),
    "name_value": ('{"name": "DB_PASSWORD", "value": "open sesame 42"}', "open sesame 42"),
    "name_value_yaml": ("- name: DB_PASSWORD\n  value: opensesame42", "opensesame42"),
    "xml": ("<password>open sesame 42</password>", "open sesame 42"),
    "flag": ("mysql --db-password opensesame42 -h db", "opensesame42"),
    "flag_equals": ("run --api-key=opensesame42", "opensesame42"),
    "mysql": ("mysqldump -u root -popensesame42 db", "opensesame42"),
    "sshpass": ("sshpass -p opensesame42 ssh x", "opensesame42"),
    "german": ("Passwort: opensesame42", "opensesame42"),
    "curl": ("curl -u ann:opensesame42 https://x.example", "opensesame42"),
    "netrc": ("machine x.example login ann password opensesame42", "opensesame42"),
    "header": ("Authorization: Token opensesame42", "opensesame42"),
    "bearer": (f"-H 'Authorization: Bearer {MIX[:30]}'", MIX[:30]),
    "basic": (f"Proxy-Authorization: Basic {B64[:32]}", B64[:32]),
    "api_header": (f"X-Api-Key: {HEX[:32]}", HEX[:32]),
    "cookie": (f"Set-Cookie: sid={HEX[:32]}; Path=/", HEX[:32]),
    "cookie_json": (f'{{"Cookie": "session={MIX[:40]}; theme=dark"}}', MIX[:40]),
    "url": ("postgres://ann:open-sesame@db.example/x", "open-sesame"),
    "url_no_user": ("redis://:opensesame42@cache.example:6379/0", "opensesame42"),
    "url_token": (f"https://{HEX[:32]}@o1.ingest.example/7", HEX[:32]),
    "query": (f"https://x.example/v1?user=ann&api_key={HEX[:20]}&n=1", HEX[:20]),
    "query_sas": (f"https://x.example/c?se=2026&sig={B64[:43]}%3D", B64[:43]),
    "query_aws": (f"https://s3.example/o?X-Amz-Signature={HEX[:64]}&x=1", HEX[:64]),
    "otp": ("otpauth://totp/ann?secret=JBSWY3DPEHPK3PXP&issuer=x", "JBSWY3DPEHPK3PXP"),
    "slack_hook": (f"https://hooks.slack.com/services/T0123/B0123/{MIX[:24]}", MIX[:24]),
    "discord_hook": (f"https://discord.com/api/webhooks/123456/{MIX[:60]}", MIX[:60]),
    "pem": (f"-----BEGIN RSA PRIVATE KEY-----\n{B64}\n-----END RSA PRIVATE KEY-----", B64),
    "pem_json": (rf'"key": "-----BEGIN PRIVATE KEY-----\n{B64}\n-----END PRIVATE KEY-----\n"', B64),
    "pem_cut": (f"-----BEGIN OPENSSH PRIVATE KEY-----\n{B64}", B64),
    "jwk": (f'{{"kty": "EC", "d": "{MIX[:43]}"}}', MIX[:43]),
    "shadow": (f"ann:$6$salt1234${MIX[:86]}:19000", MIX[:86]),
}
"""What stands beside a name that gives it away."""
