//! Names that are given to credentials: of variables, of parameters in URLs, and before a `=` or `:` in
//! any text.

/// How sure a name is to be a credential's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Certain,
    /// It means something else as often: what it holds must look like a credential too.
    Ambiguous,
}

/// Where a name of the table counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Everywhere,
    /// Not in variables: `AUTHORIZATION_URL` is a setting.
    NotVariables,
    /// As a word of a variable's name or the end of its last word: `SLACK_WEBHOOK_URL`. In a URL it is
    /// an ordinary setting.
    Variables,
    /// As a word of a variable's name alone: `GH_PAT`, and not `COMPAT`.
    VariableWords,
    /// `PWD` is the working directory elsewhere.
    Parameters,
    /// As a parameter, ambiguous.
    AmbiguousParameters,
}

use Reach::{AmbiguousParameters, Everywhere, NotVariables, Parameters, VariableWords, Variables};

/// In lower case, without the signs between their words.
const NAMES: &[(&str, Reach)] = &[
    ("accesskey", Everywhere),
    ("accesstoken", Everywhere),
    ("accountkey", Everywhere),
    ("apikey", Everywhere),
    ("apisecret", Everywhere),
    ("apitoken", Everywhere),
    ("auth", AmbiguousParameters),
    ("authorization", NotVariables),
    ("authtoken", Everywhere),
    ("awsaccesskeyid", Everywhere),
    ("awssecretaccesskey", Everywhere),
    ("bearer", NotVariables),
    ("clientsecret", Everywhere),
    ("code", AmbiguousParameters),
    ("connectionstring", Everywhere),
    ("credential", Everywhere),
    ("credentials", Everywhere),
    ("encryptionkey", Everywhere),
    ("idtoken", Everywhere),
    ("jwt", AmbiguousParameters),
    ("key", AmbiguousParameters),
    ("passphrase", Everywhere),
    ("passwd", Everywhere),
    ("password", Everywhere),
    ("pat", VariableWords),
    ("privatekey", Everywhere),
    ("pwd", Parameters),
    ("refreshtoken", Everywhere),
    ("secret", Everywhere),
    ("secretkey", Everywhere),
    ("secrets", Everywhere),
    ("session", AmbiguousParameters),
    ("sessionid", AmbiguousParameters),
    ("sessiontoken", Everywhere),
    ("sharedaccesssignature", Everywhere),
    ("sid", AmbiguousParameters),
    ("sig", AmbiguousParameters),
    ("signature", AmbiguousParameters),
    ("signingkey", Everywhere),
    ("token", Everywhere),
    ("webhookurl", Variables),
    ("xamzsecuritytoken", Everywhere),
    ("xamzsignature", Everywhere),
    ("xapikey", Everywhere),
    ("xgoogsignature", Everywhere),
];

/// Whole variables that vendors' tools read and whose words say nothing of the kind. `_` stands between
/// words, once.
const VARIABLES: &[&str] = &[
    "ci_job_jwt",
    "docker_auth_config",
    "mysql_pwd",
    "netrc",
    "npm_config_auth",
    "pgpassfile",
    "rediscli_auth",
    "sentry_dsn",
    "sshpass",
    "ssh_auth_sock",
    "stripe_sk",
];

/// Last words that tell of something about a credential: `SECRET_SHA256` is not the secret.
const DESCRIPTIONS: &[&str] = &[
    "count",
    "digest",
    "expiry",
    "fingerprint",
    "hash",
    "len",
    "length",
    "limit",
    "max",
    "min",
    "sha",
    "sha1",
    "sha256",
    "sha512",
    "ttl",
];

/// The longest name of the table has three words when it is written in words.
const WORDS_MAX: usize = 3;

/// More than the longest name of the table, with the signs in it.
const NAME_BYTES_MAX: usize = 32;

/// Whether a variable, by its name, holds a credential: some words of it are one, or its last word ends
/// with one, as in `PGPASSWORD`.
pub fn is_credential_variable(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name
        .split(|it: char| !it.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let Some(last) = words.last() else {
        return false;
    };
    if DESCRIPTIONS.contains(last) {
        return false;
    }
    let is_word = |text: &str| {
        NAMES.iter().any(|(name, reach)| match reach {
            Everywhere | Variables | VariableWords => *name == text,
            NotVariables | Parameters | AmbiguousParameters => false,
        })
    };
    let is_ending = || {
        NAMES.iter().any(|(name, reach)| match reach {
            Everywhere | Variables => last.ends_with(name),
            VariableWords | NotVariables | Parameters | AmbiguousParameters => false,
        })
    };
    (1..=WORDS_MAX).any(|count| words.windows(count).any(|it| is_word(&it.concat())))
        || is_ending()
        || VARIABLES.contains(&words.join("_").as_str())
}

/// What the whole name of a parameter in a URL says. A part of one says nothing: `page_token` is a place
/// in a list.
pub fn meaning_of_parameter(name: &str) -> Option<Meaning> {
    let name: String = name
        .chars()
        .filter(|it| !matches!(it, '-' | '_' | '.' | '[' | ']'))
        .map(|it| it.to_ascii_lowercase())
        .collect();
    NAMES
        .iter()
        .find(|(known, _)| *known == name)
        .and_then(|(_, reach)| match reach {
            Everywhere | NotVariables | Parameters => Some(Meaning::Certain),
            AmbiguousParameters => Some(Meaning::Ambiguous),
            Variables | VariableWords => None,
        })
}

/// Whether what stands before a `=` or `:` ends with a credential's name, as `"DB_PASSWORD"` and
/// `x-api-key` do.
pub fn ends_with_credential_name(text: &[u8]) -> bool {
    let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let rest = text.iter().rev().take(NAME_BYTES_MAX).take_while(in_name);
    let mut name: Vec<u8> = rest
        .filter(|it| it.is_ascii_alphanumeric())
        .map(u8::to_ascii_lowercase)
        .collect();
    name.reverse();
    NAMES.iter().any(|(known, reach)| match reach {
        Everywhere | NotVariables => name.ends_with(known.as_bytes()),
        Variables | VariableWords | Parameters | AmbiguousParameters => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_credentials_are_known() {
        for name in [
            "OPENAI_API_KEY",
            "openai_api_key",
            "GITHUB_TOKEN",
            "GITHUBTOKEN",
            "PGPASSWORD",
            "DB_PASSWORD_PROD",
            "DB_PASSWD",
            "CLIENT_SECRET",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "AWS_SESSION_TOKEN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "SSH_PRIVATE_KEY",
            "AZURE_STORAGE_CONNECTION_STRING",
            "MYSQL_PWD",
            "NPM_CONFIG__AUTH",
            "GH_PAT",
            "OPENAI_API_KEY_2",
            "SLACK_WEBHOOK_URL",
            "VAULT_TOKEN",
            "SSH_AUTH_SOCK",
            "SHARED_ACCESS_SIGNATURE",
            "x-api-key",
        ] {
            assert!(is_credential_variable(name), "{name}");
        }
    }

    #[test]
    fn ordinary_variables_pass() {
        for name in [
            "",
            "_",
            "PATH",
            "PWD",
            "OLDPWD",
            "HOME",
            "LANG",
            "MAX_TOKENS",
            "TOKENIZERS_PARALLELISM",
            "TOKEN_LIMIT",
            "SECRET_SHA256",
            "KEYBOARD",
            "MONKEY",
            "PATTERN",
            "COMPAT",
            "API_URL",
            "AUTHORIZATION_URL",
            "NODE_ENV",
            "RUST_BACKTRACE",
            "PYTHONPATH",
            "LD_LIBRARY_PATH",
            "CI",
            "DATABASE_URL",
            "PATH_INFO",
            "COMPATIBLE",
            "KEY",
            "SESSION",
        ] {
            assert!(!is_credential_variable(name), "{name}");
        }
    }

    #[test]
    fn a_parameter_is_known_by_its_whole_name() {
        for (name, meaning) in [
            ("api_key", Some(Meaning::Certain)),
            ("X-Amz-Signature", Some(Meaning::Certain)),
            ("pwd", Some(Meaning::Certain)),
            ("[token]", Some(Meaning::Certain)),
            ("key", Some(Meaning::Ambiguous)),
            ("jwt", Some(Meaning::Ambiguous)),
            ("page_token", None),
            ("webhook_url", None),
            ("pat", None),
            ("q", None),
            ("", None),
        ] {
            assert_eq!(meaning_of_parameter(name), meaning, "{name}");
        }
    }

    #[test]
    fn in_text_a_name_ends_with_what_it_is() {
        for text in [
            "DB_PASSWORD",
            "x-api-key",
            "{\"apiKey",
            "let my_access_key",
            "é.token",
        ] {
            assert!(ends_with_credential_name(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "PWD",
            "compat",
            "tokens",
            "key",
            "password other",
            "signature",
        ] {
            assert!(!ends_with_credential_name(text.as_bytes()), "{text}");
        }
    }
}
