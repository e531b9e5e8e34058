# ruff: noqa: E501
"""A sample of every shape of secret that zettel knows, built from parts, so that scanners leave this file alone."""

from __future__ import annotations

from itertools import cycle, islice

from zettel.text.secret_shapes import CARD, IBAN


def run(length: int, letters: str = "aB3dEf7hJ9kLm2") -> str:
    """Return as many characters, in turn."""
    return "".join(islice(cycle(letters), length))


def hexes(length: int) -> str:
    """Return as many hexadecimal digits."""
    return run(length, "3fa90b7c5d1e")


UPPER = "AB3CD5EF7"

SAMPLES: dict[str, tuple[str, str]] = {
    # kind: (text, the part of it that is secret)
    kind: (text.format(secret) if "{}" in text else text + secret, secret)
    for kind, text, secret in (
        ("private key", "", f"-----BEGIN RSA PRIVATE {'KEY'}-----\nMIIE{run(60)}\n-----END RSA PRIVATE {'KEY'}-----"),
        ("PuTTY private key", "", f"PuTTY-User-Key-{'File'}-3: ssh-rsa\nLines: 2\n{run(64)}\nPrivate-MAC: {hexes(64)}"),
        ("age key", "", "AGE-SECRET-KEY-" + "1" + run(58, "AB3CD5")),
        ("password hash", "", "$2b" + "$12$" + run(53)),
        ("AWS access key", "", "AKIA" + "QUIXOTEVILLE2345"),
        ("AWS secret key", "aws_secret_access_key = ", run(40)),
        ("AWS session token", "AWS_SESSION_TOKEN=", run(140)),
        ("AWS Bedrock key", "", "ABSK" + run(120)),
        ("Google key", "", "AIza" + run(35)),
        ("Google client secret", "", "GOCSPX-" + run(28)),
        ("Google access token", "", "ya29." + run(40)),
        ("Google refresh token", "", "1//0" + run(60)),
        ("Azure key", "AccountKey=", run(86) + "=="),
        ("Azure client secret", "", "abc8" + "Q~" + run(34)),
        ("Azure signature", "https://x.blob.core.windows.net/a?se=2024&sig=", run(43) + "%3D"),
        ("Azure DevOps token", "", run(76) + "AZDO" + "a1B2"),
        ("DigitalOcean token", "", "dop_" + "v1_" + hexes(64)),
        ("Heroku key", "", "HRKU-" + run(60)),
        ("Fly.io token", "", "fm2_" + run(80)),
        ("Netlify token", "", "nfp_" + run(36)),
        ("Cloudflare key", "", "v1.0-" + hexes(24) + "-" + hexes(146)),
        ("Alibaba access key", "", "LTAI" + "5tABcd3FGh9JKlmn"),
        ("Terraform token", "", run(14) + ".atlasv1." + run(64)),
        ("Vault token", "", "hvs." + run(30)),
        ("Pulumi token", "", "pul-" + hexes(40)),
        ("Doppler token", "", "dp." + "pt." + run(43)),
        ("Tailscale key", "", "tskey-" + "auth-" + run(24)),
        ("1Password token", "", "ops_" + "eyJ" + run(120)),
        ("GitHub token", "", "ghp_" + run(36)),
        ("GitLab token", "", "glpat-" + run(20)),
        ("Atlassian token", "", "ATATT" + "3" + run(80)),
        ("npm token", "", "npm_" + run(36)),
        ("PyPI token", "", "pypi-" + "AgEIcHlwaS5vcmc" + run(60)),
        ("RubyGems key", "", "rubygems_" + hexes(48)),
        ("crates.io token", "", "cio" + run(32)),
        ("NuGet key", "", "oy2" + run(43, "abc3def5")),
        ("Docker token", "", "dckr_" + "pat_" + run(27)),
        ("Clojars token", "", "CLOJARS_" + run(60, "abc3def5")),
        ("registry login", "//registry.example/:_authToken=", run(40)),
        ("Sentry token", "", "sntryu_" + hexes(64)),
        ("Grafana token", "", "glsa_" + run(32) + "_" + hexes(8)),
        ("New Relic key", "", "NRAK-" + run(27, UPPER)),
        ("Dynatrace token", "", "dt0c01." + run(24, UPPER) + "." + run(64, UPPER)),
        ("PostHog key", "", "phx_" + run(43)),
        ("Postman key", "", "PMAK-" + hexes(24) + "-" + hexes(34)),
        ("Databricks token", "", "dapi" + hexes(32)),
        ("Supabase key", "", "sbp_" + hexes(40)),
        ("PlanetScale token", "", "pscale_" + "tkn_" + run(43)),
        ("Anthropic key", "", "sk-" + "ant-api03-" + run(93)),
        ("model provider's key", "", "sk-" + "proj-" + run(48)),
        ("Hugging Face token", "", "hf_" + run(34)),
        ("Groq key", "", "gsk_" + run(52)),
        ("xAI key", "", "xai-" + run(80)),
        ("Replicate token", "", "r8_" + run(37)),
        ("Perplexity key", "", "pplx-" + run(48)),
        ("zettel key", "", "zk_" + hexes(12) + "_" + run(43)),
        ("Slack token", "", "xoxb-" + "123456789012-" + run(24)),
        ("Slack webhook", "https://", "hooks.slack.com/" + "services/T0AAAA111/B0BBBB222/" + run(24)),
        ("Discord token", "", "MTEy" + run(20) + "." + run(6) + "." + run(38)),
        ("Discord webhook", "https://", "discord.com/api/" + "webhooks/123456789012345678/" + run(68)),
        ("Teams webhook", "https://acme", f".webhook.office.com/webhookb2/{hexes(73)}/IncomingWebhook/{hexes(32)}/{hexes(36)}"),
        ("Telegram bot token", "", "123456789:" + "AA" + run(33)),
        ("SendGrid key", "", "SG." + run(22) + "." + run(43)),
        ("Twilio key", "", "SK" + hexes(32)),
        ("Mailgun key", "", "key-" + hexes(32)),
        ("Mailchimp key", "", hexes(32) + "-us" + "14"),
        ("Resend key", "", "re_" + run(8) + "_" + run(24)),
        ("Facebook token", "", "EAA" + run(120)),
        ("X token", "", "A" * 21 + run(80, "b3Cd5")),
        ("Notion token", "", "ntn_" + run(46)),
        ("Linear key", "", "lin_" + "api_" + run(40)),
        ("Airtable token", "", "pat" + run(14) + "." + hexes(64)),
        ("Figma token", "", "figd_" + run(40)),
        ("Dropbox token", "", "sl." + run(136)),
        ("Mapbox token", "", "sk." + "eyJ" + run(60) + "." + run(22)),
        ("Stripe key", "", "sk_" + "live_" + run(24)),
        ("Square token", "", "sq0atp-" + run(22)),
        ("Braintree token", "", "access_token" + "$production$" + run(16, "abc3def5") + "$" + hexes(32)),
        ("Shopify token", "", "shpat_" + hexes(32)),
        ("Razorpay key", "", "rzp_" + "live_" + run(14)),
        ("JWT", "", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + run(30) + "." + run(43)),
        ("password in an address", "postgres://ann:{}@db.local/boats", "tulips7"),
        ("login header", "Authorization: Basic ", run(20)),
        ("bearer token", "send it with Bearer ", run(40)),
        ("login of a command", "curl -s -u ann:", "tulips7 https://x.example".split()[0]),
        ("token in an address", "https://x.example/reset?user=ann&token=", hexes(26)),
        ("API key", "DATADOG_API_KEY=", hexes(32)),
        ("password", "The wifi password is ", "tulips77"),
        ("PIN", "My PIN is ", "4711"),
        ("card security code", "the CVV is ", "937"),
        ("US social security number", "her SSN is ", "219-09-9999"),
        ("recovery phrase", "seed phrase: ", " ".join(f"{word} canvas velvet" for word in ("orbit", "lemon", "hazel", "prism"))),
        (CARD, "the card is ", "4111 1111 1111 1111"),
        (IBAN, "pay to ", "NO93 8601 1117 947"),
    )
}  # fmt: skip
"""Kind of secret: a text with it, and the part of the text that is secret."""
