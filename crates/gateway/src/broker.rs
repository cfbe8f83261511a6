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

fn with_value(header: &[u8], secret: &Brokered) -> Option<Zeroizing<Vec<u8>>> {
    if let Some(with) = replaced(header, secret) {
        return Some(with);
    }
    let (scheme, credentials) = header.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = Zeroizing::new(LENIENT.decode(credentials.trim_ascii()).ok()?);
    let with = replaced(&decoded, secret)?;
    let encoded = Zeroizing::new(STANDARD.encode(&*with));
    Some(Zeroizing::new([b"Basic ", encoded.as_bytes()].concat()))
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
    fn what_is_printed_of_a_secret_is_not_its_value() {
        assert!(!format!("{:?}", secret("real value")).contains("real"));
    }
}
