//! Answers that were given beforehand.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use glovebox_model::{PresetResponse, Result};
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{HeaderMap, Method, StatusCode};

use super::check::{refuse, shown};
use super::host::HostRule;
use crate::path::{PathPattern, Plain};

/// More than any server sends.
const HEADERS_MOST: usize = 128;
/// These say where a message ends and what becomes of its connection: that is not the answer's.
const FRAMING: [HeaderName; 6] = [
    CONNECTION,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

#[derive(Debug, Clone)]
pub(crate) struct Preset {
    host: HostRule,
    port: Option<u16>,
    method: Option<Method>,
    path: Option<PathPattern>,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Preset {
    pub(crate) fn new(given: &PresetResponse) -> Result<Self> {
        if given.port == Some(0) {
            return Err(refuse("there is no port 0").hint("leave `port` out for every port"));
        }
        let status = status(given.status)?;
        let body = body(given)?;
        let bodiless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
        if bodiless && !body.is_empty() {
            return Err(refuse(format!("an answer with status {status} has a body"))
                .hint("leave the body out, or use status 200"));
        }
        let mut headers = headers(given)?;
        if given.json.is_some() && !headers.contains_key(CONTENT_TYPE) {
            let json = HeaderValue::from_static("application/json");
            headers.insert(CONTENT_TYPE, json);
        }
        Ok(Self {
            host: HostRule::parse(&given.host)?,
            port: given.port,
            method: given.method.as_deref().map(method).transpose()?,
            path: given.path.as_deref().map(path).transpose()?,
            status,
            headers,
            body,
        })
    }

    /// What it takes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| name.as_str().len() + value.len());
        self.body.len() + headers.sum::<usize>()
    }

    pub(crate) fn is_for(&self, host: &str) -> bool {
        self.host.fits(host)
    }

    pub(crate) fn fits(&self, host: &str, port: u16, method: &Method, path: &str) -> bool {
        self.host.fits(host)
            && self.port.is_none_or(|it| it == port)
            && self.method.as_ref().is_none_or(|it| it == method)
            && self.path.as_ref().is_none_or(|rule| {
                let plain = Plain::read(path);
                plain.is_some_and(|it| it.is_allowed_by(std::slice::from_ref(rule)))
            })
    }
}

fn status(number: u16) -> Result<StatusCode> {
    match StatusCode::from_u16(number) {
        Ok(status) if (200..=599).contains(&number) => Ok(status),
        Ok(_) | Err(_) => Err(refuse(format!("{number} is not the status of an answer"))
            .hint("use one from 200 to 599")),
    }
}

fn method(text: &str) -> Result<Method> {
    let upper = text.to_ascii_uppercase();
    Method::from_bytes(upper.as_bytes()).map_err(|_| {
        refuse(format!("`{}` is not a method", shown(text))).hint("write for example `GET`")
    })
}

fn path(text: &str) -> Result<PathPattern> {
    text.parse::<PathPattern>().map_err(|error| {
        let refused = refuse(error.message);
        error
            .hints
            .into_iter()
            .fold(refused, |it, hint| it.hint(hint))
    })
}

fn headers(given: &PresetResponse) -> Result<HeaderMap> {
    if given.headers.len() > HEADERS_MOST {
        return Err(refuse(format!(
            "an answer has more than {HEADERS_MOST} headers"
        )));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &given.headers {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| refuse(format!("`{}` is not the name of a header", shown(name))))?;
        if FRAMING.contains(&key) {
            return Err(refuse(format!("an answer sets the header `{key}`"))
                .hint("leave it out: it is made to fit the body"));
        }
        let value = HeaderValue::from_str(value).map_err(|_| {
            refuse(format!("the value of header `{key}` cannot be sent"))
                .hint("a value is one line of visible ASCII")
        })?;
        headers.append(key, value);
    }
    Ok(headers)
}

fn body(given: &PresetResponse) -> Result<Bytes> {
    match (&given.body, &given.body_base64, &given.json) {
        (None, None, None) => Ok(Bytes::new()),
        (Some(text), None, None) => Ok(text.clone().into()),
        (None, None, Some(value)) => Ok(value.to_string().into()),
        (None, Some(text), None) => STANDARD.decode(text).map(Bytes::from).map_err(|error| {
            refuse(format!("`body_base64` cannot be read: {error}"))
                .hint("use the standard alphabet with padding; text can stand in `body`")
        }),
        _ => Err(refuse("an answer has more than one body")
            .hint("give one of `body`, `body_base64` and `json`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::Code;

    fn given() -> PresetResponse {
        serde_json::from_str(r#"{"host": "a.test"}"#).unwrap()
    }

    fn fits(given: &PresetResponse, host: &str, port: u16, method: &str, path: &str) -> bool {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        Preset::new(given).unwrap().fits(host, port, &method, path)
    }

    #[test]
    fn what_is_left_out_fits_everything() {
        assert!(fits(&given(), "a.test", 80, "GET", "/x"));
        assert!(!fits(&given(), "b.test", 80, "GET", "/x"));
        let narrow = PresetResponse {
            port: Some(443),
            method: Some("post".to_owned()),
            path: Some("/v1/*".to_owned()),
            ..given()
        };
        assert!(fits(&narrow, "a.test", 443, "POST", "/v1/items"));
        assert!(!fits(&narrow, "a.test", 80, "POST", "/v1/items"));
        assert!(!fits(&narrow, "a.test", 443, "GET", "/v1/items"));
        assert!(!fits(&narrow, "a.test", 443, "POST", "/v1/items/1"));
        assert!(!fits(&narrow, "a.test", 443, "POST", "/v1/../v1/items"));
    }

    #[test]
    fn a_body_is_text_bytes_or_json() {
        let text = PresetResponse {
            body: Some("hi".to_owned()),
            ..given()
        };
        assert_eq!(&*Preset::new(&text).unwrap().body, b"hi");
        let bytes = PresetResponse {
            body_base64: Some("AP8=".to_owned()),
            ..given()
        };
        assert_eq!(&*Preset::new(&bytes).unwrap().body, [0, 255]);
        let json = PresetResponse {
            json: Some(serde_json::json!({"a": 1})),
            ..given()
        };
        let json = Preset::new(&json).unwrap();
        assert_eq!(&*json.body, br#"{"a":1}"#);
        assert_eq!(json.headers[CONTENT_TYPE], "application/json");
    }

    #[test]
    fn an_answer_that_cannot_be_given_is_refused() {
        let header = |name: &str, value: &str| PresetResponse {
            headers: [(name.to_owned(), value.to_owned())].into(),
            ..given()
        };
        let status = |status| PresetResponse { status, ..given() };
        let some = |text: &str| Some(text.to_owned());
        let wrong = [
            PresetResponse {
                host: "*a".to_owned(),
                ..given()
            },
            PresetResponse {
                port: Some(0),
                ..given()
            },
            PresetResponse {
                method: some("G ET"),
                ..given()
            },
            PresetResponse {
                path: some("v1"),
                ..given()
            },
            PresetResponse {
                path: some("/[a]"),
                ..given()
            },
            status(0),
            status(99),
            status(100),
            status(101),
            status(600),
            header("a b", "x"),
            header("x-a", "x\r\ny"),
            header("Content-Length", "7"),
            header("transfer-encoding", "chunked"),
            PresetResponse {
                body_base64: some("%%%"),
                ..given()
            },
            PresetResponse {
                body: some("a"),
                body_base64: some("YQ=="),
                ..given()
            },
            PresetResponse {
                body: some("a"),
                status: 204,
                ..given()
            },
        ];
        for given in wrong {
            let error = Preset::new(&given).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{given:?}");
        }
    }
}
