//! What programs with a network see in their environment. Programs that know nothing of it get out
//! all the same; these are for those that ask.

/// Where the sandbox shows whom it trusts.
const BUNDLE: &str = "/run/ca-certificates.crt";
const PROXY: &str = "http://127.0.0.1:3128";
const AT_HOME: &str = "localhost,127.0.0.1,::1";

/// Those that read the system's bundle need none of the first; the rest bring one of their own.
const ALL: [(&str, &str); 14] = [
    ("SSL_CERT_FILE", BUNDLE),
    ("CURL_CA_BUNDLE", BUNDLE),
    ("REQUESTS_CA_BUNDLE", BUNDLE),
    ("PIP_CERT", BUNDLE),
    ("GIT_SSL_CAINFO", BUNDLE),
    ("NODE_EXTRA_CA_CERTS", BUNDLE),
    ("CARGO_HTTP_CAINFO", BUNDLE),
    ("AWS_CA_BUNDLE", BUNDLE),
    ("http_proxy", PROXY),
    ("https_proxy", PROXY),
    ("HTTP_PROXY", PROXY),
    ("HTTPS_PROXY", PROXY),
    ("no_proxy", AT_HOME),
    ("NO_PROXY", AT_HOME),
];

pub(crate) fn variables() -> &'static [(&'static str, &'static str)] {
    &ALL
}
