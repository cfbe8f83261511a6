//! Which answers are text, by what they say and by what they look like.

use crate::refusal::{Refusal, RefusalCode, shown};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Html,
    Json,
    Text,
}

/// The parts of a `Content-Type` header that are of use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) essence: Option<String>,
    pub(super) charset: Option<String>,
}

const LONGEST: usize = 127;

/// Types of `application` that are text to a reader.
const TEXTS: &[&str] = &[
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/ld+json",
    "application/ndjson",
    "application/rtf",
    "application/sql",
    "application/toml",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
];

impl Declared {
    pub(super) fn of(header: Option<&str>) -> Self {
        let Some(header) = header else {
            return Self::default();
        };
        let mut parts = header.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let token = |it: u8| it.is_ascii_alphanumeric() || b"!#$&-^_.+/".contains(&it);
        let sound = essence.len() <= LONGEST
            && essence.split('/').filter(|it| !it.is_empty()).count() == 2
            && essence.bytes().filter(|it| *it == b'/').count() == 1
            && essence.bytes().all(token);
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let value = value.trim().trim_matches(['"', '\'']);
            name.trim()
                .eq_ignore_ascii_case("charset")
                .then(|| value.chars().take(LONGEST).collect())
        });
        Self {
            essence: sound.then_some(essence),
            charset,
        }
    }

    /// Refuses a type that is no text whatever its bytes are.
    pub(super) fn refused(&self) -> Option<Refusal> {
        let essence = self.essence.as_deref()?;
        match by_name(essence) {
            Some(_) => None,
            // Said by servers that do not know; the bytes decide.
            None if essence == "application/octet-stream" => None,
            None => Some(unsupported(essence)),
        }
    }

    /// A text that is declared as something else than it looks like is taken as it is declared;
    /// bytes that are no text are never taken.
    pub(super) fn kind(&self, sniffed: &'static str) -> Result<Kind, Refusal> {
        let looks = by_name(sniffed).ok_or_else(|| unsupported(sniffed))?;
        let declared = self.essence.as_deref().and_then(by_name);
        Ok(declared.unwrap_or(looks))
    }
}

fn unsupported(essence: &str) -> Refusal {
    Refusal::new(
        RefusalCode::UnsupportedContentType,
        format!("`{}` is not text", shown(essence)),
    )
    .hint("text, HTML, JSON and XML are read; fetch other files from a sandbox with a network")
}

fn by_name(essence: &str) -> Option<Kind> {
    match essence {
        "text/html" | "application/xhtml+xml" => Some(Kind::Html),
        "application/json" | "text/json" => Some(Kind::Json),
        _ if essence.starts_with("application/") && essence.ends_with("+json") => Some(Kind::Json),
        // Pictures are not read, also when they are written in XML.
        _ if essence.starts_with("application/") && essence.ends_with("+xml") => Some(Kind::Text),
        _ if essence.starts_with("text/") || TEXTS.contains(&essence) => Some(Kind::Text),
        _ => None,
    }
}

/// How files of some kinds begin.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\x7fELF", "application/x-elf"),
    (b"\x00asm", "application/wasm"),
    (b"OggS", "application/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"RIFF", "application/octet-stream"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
];

const LOOKED_AT: usize = 1445;
const HTML_BEGINS: &[&str] = &[
    "<!doctype html",
    "<html",
    "<head",
    "<body",
    "<script",
    "<iframe",
    "<h1",
    "<div",
    "<font",
    "<table",
    "<a ",
    "<style",
    "<title",
    "<br",
    "<p>",
    "<meta",
    "<!--",
];

/// What the bytes look like. Whatever has bytes that no text has is binary.
pub(super) fn sniff(bytes: &[u8]) -> &'static str {
    if let Some((_, what)) = MAGIC.iter().find(|(begin, _)| bytes.starts_with(begin)) {
        return what;
    }
    let wide = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    let binary = |it: &u8| matches!(it, 0x00..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    if !wide && bytes.iter().any(binary) {
        return "application/octet-stream";
    }
    let begin = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin);
    let begin = begin.trim_ascii_start().to_ascii_lowercase();
    if HTML_BEGINS
        .iter()
        .any(|it| begin.starts_with(it.as_bytes()))
    {
        return "text/html";
    }
    match begin.first() {
        Some(b'<') if begin.starts_with(b"<?xml") => "application/xml",
        Some(b'{' | b'[') => "application/json",
        _ => "text/plain",
    }
}
