//! What happens to an exec, as a server tells it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_model::{Status, Stream};
use serde::Deserialize;

use super::sse::{Garbled, Raw};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    State {
        status: Status,
        queue_position: Option<u64>,
    },
    Output {
        stream: Stream,
        bytes: Vec<u8>,
    },
    /// Something that this command has no use for.
    Other,
}

/// Its number, and what it is.
pub(crate) fn read(raw: &Raw) -> Result<(u64, Event), Garbled> {
    const NOT_OURS: Garbled = Garbled("an event does not have the form of one");
    let seq = raw
        .id
        .parse()
        .map_err(|_| Garbled("an event has no number"))?;
    let event = match raw.kind.as_str() {
        "state" => {
            let state: State = serde_json::from_str(&raw.data).map_err(|_| NOT_OURS)?;
            Event::State {
                status: state.status,
                queue_position: state.queue_position,
            }
        }
        "output" => {
            let output: Output = serde_json::from_str(&raw.data).map_err(|_| NOT_OURS)?;
            let stream = match output.stream {
                Name::Stdout => Stream::Stdout,
                Name::Stderr => Stream::Stderr,
            };
            match (output.text, output.base64) {
                (Some(text), None) => Event::Output {
                    stream,
                    bytes: text.into_bytes(),
                },
                (None, Some(digits)) => {
                    let bytes = STANDARD.decode(digits).map_err(|_| NOT_OURS)?;
                    Event::Output { stream, bytes }
                }
                // From here on nothing of it was kept; the record says so too.
                (None, None) => Event::Other,
                (Some(_), Some(_)) => return Err(NOT_OURS),
            }
        }
        _ => Event::Other,
    };
    Ok((seq, event))
}

#[derive(Deserialize)]
struct State {
    status: Status,
    queue_position: Option<u64>,
}

/// A piece that is text by itself comes as text.
#[derive(Deserialize)]
struct Output {
    stream: Name,
    text: Option<String>,
    base64: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    Stdout,
    Stderr,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(kind: &str, data: &str) -> Raw {
        Raw {
            id: "7".to_owned(),
            kind: kind.to_owned(),
            data: data.to_owned(),
        }
    }

    #[test]
    fn events_are_read_and_unknown_ones_are_left_alone() {
        let output = |bytes: &[u8]| Event::Output {
            stream: Stream::Stderr,
            bytes: bytes.to_vec(),
        };
        for (kind, data, expected) in [
            (
                "output",
                r#"{"stream":"stderr","text":"ż\n"}"#,
                output("ż\n".as_bytes()),
            ),
            (
                "output",
                r#"{"stream":"stderr","base64":"/wA="}"#,
                output(b"\xff\0"),
            ),
            (
                "output",
                r#"{"stream":"stderr","truncated":true}"#,
                Event::Other,
            ),
            ("effect", "anything", Event::Other),
            (
                "state",
                r#"{"seq":7,"at":"…","status":"queued","queue_position":2}"#,
                Event::State {
                    status: Status::Queued,
                    queue_position: Some(2),
                },
            ),
        ] {
            assert_eq!(read(&raw(kind, data)), Ok((7, expected)), "{kind} {data}");
        }
    }

    #[test]
    fn garbage_is_an_error() {
        for (kind, data) in [
            ("state", "{}"),
            ("state", r#"{"status":"dancing"}"#),
            ("output", r#"{"stream":"stdin","text":""}"#),
            ("output", r#"{"stream":"stdout","base64":"*"}"#),
            ("output", r#"{"stream":"stdout","text":"a","base64":""}"#),
        ] {
            assert!(read(&raw(kind, data)).is_err(), "{kind} {data}");
        }
        let unnumbered = Raw {
            id: String::new(),
            ..raw("state", r#"{"status":"running"}"#)
        };
        assert!(read(&unnumbered).is_err());
    }
}
