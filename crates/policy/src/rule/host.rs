//! Destinations that the words of a command name.

use glovebox_model::HostPattern;

/// The destination of a URL, with the usual port of its scheme. It is read generously, since rules that
/// deny must see it: a flag may stand before the scheme.
pub(crate) fn destination_of_url(word: &str) -> Option<HostPattern> {
    let (scheme, rest) = word.split_once("://")?;
    let scheme = scheme
        .rsplit(|it: char| !it.is_ascii_alphanumeric())
        .next()?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |it| it.1);
    let has_port = HostPattern::of_destination(host).is_ok_and(|it| it.port().is_some());
    let usual = match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => ":80",
        "https" | "wss" => ":443",
        "ftp" => ":21",
        "ssh" | "sftp" => ":22",
        "git" => ":9418",
        _ => "",
    };
    let port = if has_port { "" } else { usual };
    HostPattern::of_destination(&format!("{host}{port}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostPattern {
        HostPattern::new(text).unwrap()
    }

    #[test]
    fn a_url_names_its_host() {
        for (url, expected) in [
            ("https://Evil.example/x", "evil.example:443"),
            ("http://u:p@evil.example:8080/x", "evil.example:8080"),
            ("http://evil.example?x", "evil.example:80"),
            ("--url=https://evil.example", "evil.example:443"),
            ("git://evil.example/r", "evil.example:9418"),
            ("https://evil.example../", "evil.example:443"),
        ] {
            let found = destination_of_url(url).unwrap();
            assert!(
                host(expected).covers(&found) && found.covers(&host(expected)),
                "{url}"
            );
        }
        assert_eq!(destination_of_url("plain"), None);
    }
}
