//! One effect in one line, for people.

use std::fmt::Write as _;

use glovebox_model::{Deed, Effect, NetworkRequest, Spoken};

use crate::human::{clip, command_line, size};
use crate::paint::Tone;
use crate::render::one_line;

/// Of a command, in characters.
const LONGEST: usize = 160;

/// By what people can tell two requests apart that look alike: the beginnings of digests.
fn digests(request: &NetworkRequest, text: &mut String) {
    let body = request.body_digest.as_ref();
    let parts = [
        ("query", request.query_digest.as_ref()),
        ("body", body.filter(|_| request.body_bytes > 0)),
    ];
    for (what, digest) in parts {
        if let Some(digest) = digest {
            let _ = write!(text, "  {what} {digest:.12}");
        }
    }
    if !request.header_names.is_empty() {
        let _ = write!(text, "  headers {}", request.header_names.join(","));
    }
}

/// What it is, how it looks, and what it says.
pub(crate) fn line(effect: &Effect) -> (Tone, String) {
    let (tone, mut text) = match &effect.deed {
        Deed::FilesystemWrite(it) => {
            let tone = match it.operation.as_str() {
                "created" => Tone::Good,
                "removed" => Tone::Bad,
                "touched" => Tone::Plain,
                _ => Tone::Caution,
            };
            let mut text = format!("{:<9} {}", it.operation.as_str(), it.path.display());
            if let Some(from) = &it.from {
                let _ = write!(text, " (was {})", from.display());
            }
            if let Some(after) = it.after.as_ref().filter(|it| it.kind == "file") {
                let _ = write!(text, "  {}", size(after.size));
            }
            (tone, text)
        }
        Deed::FilesystemRead(it) => (Tone::Plain, format!("{:<9} {}", "read", it.path.display())),
        Deed::NetworkRequest(it) => {
            let how = match it.spoken {
                Spoken::Dns => "dns",
                Spoken::Udp => "udp",
                Spoken::Tcp => "tcp",
                Spoken::Tls => "tls",
                Spoken::Http => "http",
                Spoken::Https => "https",
            };
            let mut text = format!("{how:<9} {}:{}", it.host, it.port);
            if let (Some(method), Some(path)) = (&it.method, &it.path) {
                let _ = write!(text, "  {method} {path}");
            }
            if let Some(query) = &it.query {
                let _ = write!(text, "?{query}");
            }
            if it.body_bytes > 0 {
                let _ = write!(text, "  {}", size(it.body_bytes));
            }
            digests(it, &mut text);
            (Tone::Caution, text)
        }
        Deed::ProcessSpawn(it) => {
            let argv = match it.argv.split_first() {
                Some((cmd, args)) => command_line(cmd, args),
                None => it.program.display(),
            };
            // Code may be an argument; what stands here is one line.
            let one: Vec<&str> = argv.split_whitespace().collect();
            (
                Tone::Plain,
                format!("{:<9} {}", "run", clip(&one.join(" "), LONGEST)),
            )
        }
        Deed::StateMutation(it) | Deed::ExternalApiCall(it) => {
            let what = match effect.deed {
                Deed::StateMutation(_) => "state",
                _ => "api",
            };
            (
                Tone::Caution,
                format!("{what:<9} {} {}", it.target, it.action),
            )
        }
    };
    let tone = match &effect.failure_reason {
        Some(why) => {
            let _ = write!(text, "  would be refused: {why}");
            Tone::Bad
        }
        None => tone,
    };
    // A name may hold a line break, and what follows it would pass for a line of ours.
    (tone, one_line(&text))
}
