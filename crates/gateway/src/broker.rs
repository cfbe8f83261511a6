//! Puts the values of secrets in the place of their placeholders.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use glovebox_model::NetCode;
use hyper::HeaderMap;
use hyper::header::{CONTENT_LENGTH, HOST, HeaderValue};
use memchr::memmem;
use zeroize::Zeroizing;

use crate::denial::Denial;
use crate::policy::Brokered;

/// Clients leave the padding out or not.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Whether any was put in. A value that cannot stand in a header refuses the request, rather than
/// sending the placeholder.
pub(crate) fn put(headers: &mut HeaderMap, secrets: &[&Brokered]) -> Result<bool, Denial> {
    let mut any = false;
    for (name, value) in headers.iter_mut() {
        if *name == HOST || *name == CONTENT_LENGTH {
            continue;
        }
        for secret in secrets {
            let Some(with) = with_value(value.as_bytes(), secret) else {
                continue;
            };
            *value = HeaderValue::from_bytes(&with).map_err(|_| {
                Denial::new(
                    NetCode::Other,
                    format!(
                        "the value of secret `{}` cannot stand in a header",
                        secret.name
                    ),
                    "set it anew without line ends",
                )
            })?;
            value.set_sensitive(true);
            any = true;
        }
    }
    Ok(any)
}

/// A header's value with the names of secrets in the place of their placeholders, which are others
/// in each run. No text can be taken for it: it begins with a zero byte. None where nothing is put
/// in.
pub(crate) fn named(header: &[u8], secrets: &[&Brokered]) -> Option<Vec<u8>> {
    if credentials(header).is_some_and(|it| it.contains(&0)) {
        return None;
    }
    let mut named = None;
    for secret in secrets {
        let marked = Brokered {
            value: Zeroizing::new([b"\0", secret.name.as_str().as_bytes(), b"\0"].concat()),
            ..(*secret).clone()
        };
        let before: &[u8] = named.as_deref().unwrap_or(header);
        if let Some(with) = with_value(before, &marked) {
            named = Some(with.to_vec());
        }
    }
    named.map(|it| [b"\0", it.as_slice()].concat())
}

fn with_value(header: &[u8], secret: &Brokered) -> Option<Zeroizing<Vec<u8>>> {
    if let Some(with) = replaced(header, secret) {
        return Some(with);
    }
    let with = replaced(&credentials(header)?, secret)?;
    let encoded = Zeroizing::new(STANDARD.encode(&*with));
    Some(Zeroizing::new([b"Basic ", encoded.as_bytes()].concat()))
}

/// What `Basic` encodes.
fn credentials(header: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (scheme, credentials) = header.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    LENIENT
        .decode(credentials.trim_ascii())
        .ok()
        .map(Zeroizing::new)
}

fn replaced(text: &[u8], secret: &Brokered) -> Option<Zeroizing<Vec<u8>>> {
    let placeholder = secret.placeholder.as_bytes();
    if placeholder.is_empty() {
        return None;
    }
    let mut places = memmem::find_iter(text, placeholder).peekable();
    places.peek()?;
    let mut with = Zeroizing::new(Vec::with_capacity(text.len() + secret.value.len()));
    let mut rest = 0;
    for place in places {
        with.extend_from_slice(&text[rest..place]);
        with.extend_from_slice(&secret.value);
        rest = place + placeholder.len();
    }
    with.extend_from_slice(&text[rest..]);
    Some(with)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(value: &str) -> Brokered {
        Brokered {
            name: "token".parse().unwrap(),
            placeholder: "PLACE".to_owned(),
            value: Zeroizing::new(value.as_bytes().to_vec()),
            hosts: ["a.test:443".parse().unwrap()].into(),
        }
    }

    fn sent(header: &str, value: &str, secret: &Brokered) -> Result<String, Denial> {
        let mut headers = HeaderMap::new();
        let name = hyper::header::HeaderName::from_bytes(header.as_bytes()).unwrap();
        headers.insert(name.clone(), value.parse().unwrap());
        put(&mut headers, &[secret])?;
        Ok(String::from_utf8(headers[name].as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn a_placeholder_in_a_header_becomes_the_value() {
        let secret = secret("real value");
        let sent = |value: &str| sent("authorization", value, &secret).unwrap();
        assert_eq!(sent("Bearer PLACE"), "Bearer real value");
        assert_eq!(sent("PLACE,PLACE"), "real value,real value");
        assert_eq!(sent("Bearer PLAC"), "Bearer PLAC");
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        assert_eq!(sent(&basic("me:PLACE")), basic("me:real value"));
        assert_eq!(
            sent(basic("me:PLACE").trim_end_matches('=')),
            basic("me:real value")
        );
        assert_eq!(sent(&basic("me:other")), basic("me:other"));
        assert_eq!(sent("Basic %%%"), "Basic %%%");
    }

    #[test]
    fn a_value_that_would_split_a_header_refuses_the_request() {
        let secret = secret("a\r\nx-more: b");
        assert_eq!(
            sent("x-key", "PLACE", &secret).unwrap_err().code,
            NetCode::Other
        );
        assert_eq!(sent("host", "PLACE", &secret).unwrap(), "PLACE");
    }

    #[test]
    fn a_header_is_named_the_same_in_each_run_and_like_no_text() {
        let other = Brokered {
            placeholder: "OTHER".to_owned(),
            ..secret("")
        };
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        for (one, two) in [
            ("Bearer PLACE".to_owned(), "Bearer OTHER".to_owned()),
            (basic("me:PLACE"), basic("me:OTHER")),
        ] {
            let first = named(one.as_bytes(), &[&secret("")]).unwrap();
            assert_eq!(named(two.as_bytes(), &[&other]).unwrap(), first);
            assert_eq!(first[0], 0);
        }
        for text in ["Bearer x", &basic("me:\0token\0"), &basic("\0PLACE")] {
            assert_eq!(named(text.as_bytes(), &[&secret("")]), None, "{text:?}");
        }
    }

    #[test]
    fn what_is_printed_of_a_secret_is_not_its_value() {
        assert!(!format!("{:?}", secret("real value")).contains("real"));
    }
}
