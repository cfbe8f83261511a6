//! Bytes to text.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use super::content::Kind;
use crate::refusal::{Refusal, RefusalCode, shown};

/// Where a page may name its own character set.
const PRESCAN: usize = 1024;

/// By the mark at the begin, else as declared, else as the page says, else UTF-8 and, where it is
/// not, the set of old pages. What is malformed becomes U+FFFD.
pub(super) fn decode(
    bytes: &[u8],
    declared: Option<&str>,
    kind: Kind,
) -> Result<(String, &'static str), Refusal> {
    let encoding = match (Encoding::for_bom(bytes), declared) {
        (Some((encoding, _)), _) => encoding,
        (None, Some(label)) => named(label)?,
        (None, None) => {
            let own = match kind {
                Kind::Html => named_inside(bytes),
                Kind::Json | Kind::Text => None,
            };
            match own {
                Some(encoding) => encoding,
                None if kind != Kind::Json && std::str::from_utf8(bytes).is_err() => WINDOWS_1252,
                None => UTF_8,
            }
        }
    };
    let (text, _) = encoding.decode_with_bom_removal(bytes);
    Ok((text.into_owned(), encoding.name()))
}

fn named(label: &str) -> Result<&'static Encoding, Refusal> {
    Encoding::for_label_no_replacement(label.as_bytes()).ok_or_else(|| {
        Refusal::new(
            RefusalCode::DecodeError,
            format!("the character set `{}` is not known", shown(label)),
        )
    })
}

/// `charset=` inside the first bytes of a page. A page that can be read this far is not in UTF-16,
/// whatever it says.
fn named_inside(bytes: &[u8]) -> Option<&'static Encoding> {
    let begin = bytes.get(..PRESCAN).unwrap_or(bytes).to_ascii_lowercase();
    let at = begin.windows(8).position(|it| it == b"charset=")?;
    let rest = begin.get(at + 8..)?;
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
    let rest = rest.strip_prefix(b"'").unwrap_or(rest);
    let known = |it: &u8| it.is_ascii_alphanumeric() || b"-_:.".contains(it);
    let length = rest.iter().take_while(|it| known(it)).count();
    let encoding = Encoding::for_label_no_replacement(rest.get(..length)?)?;
    Some(encoding.output_encoding())
}
