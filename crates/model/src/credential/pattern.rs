//! Tokens that begin in a way that only a service's tokens do.

use super::starts_word;

/// A known beginning, then at least so many characters of an alphabet.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    /// With its article, for a sentence.
    pub what: &'static str,
    pub prefix: &'static str,
    pub least: usize,
    pub alphabet: fn(u8) -> bool,
}

macro_rules! patterns {
    ($($what:literal: $($prefix:literal),+ + $least:literal of $alphabet:ident;)+) => {
        &[$($(Pattern { what: $what, prefix: $prefix, least: $least, alphabet: $alphabet }),+),+]
    };
}

/// Every pattern holds for every source of text: each begins so that ordinary text does not.
pub const PATTERNS: &[Pattern] = patterns! {
    "an AWS access key id": "AKIA", "ASIA" + 16 of is_upper_or_digit;
    "a DigitalOcean token": "dop_v1_" + 40 of is_alphanumeric;
    "a GitHub token": "ghp_", "gho_", "ghu_", "ghs_", "ghr_" + 30 of is_alphanumeric;
    "a GitHub token": "github_pat_" + 20 of is_base64url;
    "a GitLab token": "glpat-", "gldt-", "glrt-" + 20 of is_base64url;
    "a Glovebox token": "gb_" + 97 of is_hex_or_underscore;
    "a Glovebox token": "gbx_" + 20 of is_base64url;
    "a Google API key": "AIza" + 35 of is_base64url;
    "a Google token": "ya29." + 20 of is_base64url_or_dot;
    "a Hugging Face token": "hf_" + 30 of is_alphanumeric;
    "an npm token": "npm_" + 30 of is_alphanumeric;
    "a PyPI token": "pypi-AgEI" + 30 of is_base64url;
    // Of another index than pypi.org, which writes its own name into the first bytes.
    "a PyPI token": "pypi-" + 50 of is_base64url;
    "a SendGrid key": "SG." + 40 of is_base64url_or_dot;
    "a Slack token": "xapp-", "xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-" + 10 of is_base64url;
    "a Stripe key": "rk_live_", "sk_live_", "sk_test_" + 16 of is_alphanumeric;
    "an API key": "sk-" + 20 of is_base64url;
};

/// The bytes that a pattern begins with: most places in a text are passed by one look.
const FIRST: [bool; 256] = {
    let mut first = [false; 256];
    let mut row = 0;
    while row < PATTERNS.len() {
        first[PATTERNS[row].prefix.as_bytes()[0] as usize] = true;
        row += 1;
    }
    first
};

fn is_upper_or_digit(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_hex_or_underscore(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b'_'
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

pub(super) fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn is_base64url_or_dot(byte: u8) -> bool {
    is_base64url(byte) || byte == b'.'
}

/// The pattern of the first token in a text.
pub(super) fn find(text: &[u8]) -> Option<&'static Pattern> {
    (0..text.len())
        .filter(|at| FIRST[usize::from(text[*at])] && starts_word(text, *at))
        .find_map(|at| PATTERNS.iter().find(|it| it.stands_at(text, at)))
}

impl Pattern {
    fn stands_at(&self, text: &[u8], at: usize) -> bool {
        text[at..].starts_with(self.prefix.as_bytes())
            && run_of(text, at + self.prefix.len(), self.alphabet, self.least) == self.least
    }
}

/// How many characters of an alphabet follow, up to the most that matter: a text that is one long run
/// must not be read again from each of its places.
pub(super) fn run_of(text: &[u8], from: usize, alphabet: fn(u8) -> bool, most: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default().iter().take(most);
    rest.take_while(|byte| alphabet(**byte)).count()
}
