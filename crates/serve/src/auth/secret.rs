//! The text of a token.

use std::fmt;

use glovebox_model::TokenId;
use subtle::{Choice, ConstantTimeEq};

/// A token's whole text. It is never shown by `Debug`, and compared only by its hash.
#[derive(Clone)]
pub(crate) struct Secret {
    id: TokenId,
    text: String,
}

const ID_DIGITS: usize = 32;
const SECRET_DIGITS: usize = 64;

impl Secret {
    pub(crate) fn of(id: &TokenId, random: &[u8; 32]) -> Self {
        let digits = id.as_str().trim_start_matches("t_");
        Self {
            text: format!("gb_{digits}_{}", hex(random)),
            id: id.clone(),
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix("gb_")?.split_once('_')?;
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let fits =
            id.len() == ID_DIGITS && secret.len() == SECRET_DIGITS && secret.bytes().all(digit);
        fits.then_some(())?;
        Some(Self {
            id: format!("t_{id}").parse().ok()?,
            text: text.to_owned(),
        })
    }

    pub(crate) fn id(&self) -> &TokenId {
        &self.id
    }

    /// For the one answer, and the one file, that it may appear in.
    pub(crate) fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({}…)", self.id)
    }
}

/// In the same time wherever they differ.
pub(super) fn same(one: &[u8; 32], other: &[u8; 32]) -> Choice {
    one.ct_eq(other)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::credential::{Source, credential_in};

    #[test]
    fn what_was_made_parses_and_nothing_else_does() {
        let secret = Secret::of(&TokenId::from_random([7; 16]), &[0xab; 32]);
        let text = secret.reveal().to_owned();
        assert_eq!(Secret::parse(&text).unwrap().id(), secret.id());
        assert!(!format!("{secret:?}").contains("abab"));
        // Where tokens of others are looked for, ours is found as well.
        let found = credential_in(text.as_bytes(), Source::Line);
        assert_eq!(found, Some("a Glovebox token"));
        for wrong in [
            "",
            "gb_",
            "gb__",
            &text[1..],
            &text[..text.len() - 1],
            &format!("{text}0"),
            &text.to_uppercase(),
            &text.replace("gb_", "gb-"),
            &format!(" {text}"),
        ] {
            assert!(Secret::parse(wrong).is_none(), "{wrong}");
        }
    }
}
