//! Whether a page may call us: only one of our own.

/// `origin` names the same place as the `Host` that the request came to.
pub(super) fn is_same(origin: &str, host: &str, tls: bool) -> bool {
    let (scheme, port) = if tls {
        ("https://", ":443")
    } else {
        ("http://", ":80")
    };
    let plain = |authority: &str| {
        let authority = authority.to_ascii_lowercase();
        authority
            .strip_suffix(port)
            .map(str::to_owned)
            .unwrap_or(authority)
    };
    origin
        .strip_prefix(scheme)
        .is_some_and(|authority| plain(authority) == plain(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_pages() {
        let host = "127.0.0.1:7070";
        assert!(is_same("http://127.0.0.1:7070", host, false));
        assert!(is_same("http://localhost", "LocalHost:80", false));
        assert!(is_same("https://box.example", "box.example:443", true));
        for origin in [
            "null",
            "",
            "http://evil.test",
            "http://localhost.evil.test",
            "http://127.0.0.1:7071",
            "https://127.0.0.1:7070",
            "http://127.0.0.1:7070/",
            "http://127.0.0.1",
            "http://x@127.0.0.1:7070",
            "HTTP://127.0.0.1:7070",
            "file://",
        ] {
            assert!(!is_same(origin, host, false), "{origin}");
        }
    }
}
