//! An answer that is an error, as the one error that all surfaces share.

use glovebox_model::{Code, Error, Stage};
use hyper::StatusCode;
use serde::Deserialize;

#[derive(Deserialize)]
struct Body {
    error: Error,
}

/// What the server says, as it says it; from anybody else, what its status means.
pub(crate) fn read(address: &str, status: StatusCode, body: &[u8]) -> Error {
    match serde_json::from_slice(body) {
        Ok(Body { error }) => error,
        Err(_) => foreign(address, status),
    }
}

/// From a proxy, a newer server, or something else altogether.
fn foreign(address: &str, status: StatusCode) -> Error {
    let code = match status {
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::Forbidden,
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::PAYLOAD_TOO_LARGE => Code::PayloadTooLarge,
        StatusCode::TOO_MANY_REQUESTS => Code::RateLimited,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Code::StoreUnavailable
        }
        _ => Code::Internal,
    };
    let status = status.as_u16();
    Error::new(
        code,
        Stage::Admit,
        format!("`{address}` answered {status}, and not as a Glovebox server does"),
    )
    .hint("look at the address, and at what stands between: a proxy, another service")
}

/// An answer that means nothing to us.
pub(crate) fn garbled(address: &str, why: impl std::fmt::Display) -> Error {
    Error::new(
        Code::Internal,
        Stage::Admit,
        format!("`{address}` did not answer as a Glovebox server does"),
    )
    .caused_by(why)
    .hint("look at the address, and whether the server's version fits this command's")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_words_are_kept() {
        let body =
            br#"{"error":{"code":"rate_limited","message":"as many wait as may","stage":"admit",
            "blame":"caller","retry":{"allowed":true,"after_ms":2000},"hints":["later"],
            "request_id":"r_1"}}"#;
        let error = read("http://h:1", StatusCode::TOO_MANY_REQUESTS, body);
        assert_eq!(error.code, Code::RateLimited);
        assert_eq!(error.retry.after_ms, Some(2000));
        assert_eq!(error.hints, ["later"]);
        assert_eq!(error.request_id.unwrap().0, "r_1");
    }

    #[test]
    fn a_stranger_is_called_one() {
        for (status, code) in [
            (401, Code::Unauthenticated),
            (403, Code::Forbidden),
            (404, Code::NotFound),
            (429, Code::RateLimited),
            (502, Code::StoreUnavailable),
            (500, Code::Internal),
            (302, Code::Internal),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            for body in [
                "",
                "<html>",
                "{}",
                r#"{"error":{"code":"from_the_future"}}"#,
            ] {
                let error = read("http://h:1", status, body.as_bytes());
                assert_eq!(error.code, code, "{status} {body}");
                assert!(error.message.contains("http://h:1"), "{error}");
            }
        }
    }
}
