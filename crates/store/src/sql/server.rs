//! Which PostgreSQL to use, and how: read from a URL, whose password is never shown.

use std::fmt;
use std::time::Duration;

use ::postgres::config::{Host, SslMode};
use ::postgres::error::SqlState;
use ::postgres::{Client, Config, NoTls};
use glovebox_model::{Code, Error, Result, Stage};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::postgres::PostgresSession;
use super::{Session, tls};
use crate::failure::Doing;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A peer that vanished is noticed by these, and not only when the kernel gives up after hours.
const UNANSWERED_MOST: Duration = Duration::from_secs(20);
const ASK_AFTER: Duration = Duration::from_secs(10);
const ASK_EVERY: Duration = Duration::from_secs(3);
const ASK_TIMES: u32 = 3;

/// Everything of ours is in a schema of its own, beside whatever else the database holds.
pub(crate) const SCHEMA: &str = "glovebox";

pub(crate) struct Server {
    config: Config,
    tls: Option<MakeRustlsConnect>,
    /// Where it is, without the password.
    shown: String,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.shown).finish()
    }
}

impl Server {
    pub(crate) fn parse(url: &str, patience: Duration) -> Result<Self> {
        let known = ["postgres://", "postgresql://"];
        if !known.iter().any(|scheme| url.starts_with(scheme)) {
            return Err(bad_url("it does not start with `postgresql://`"));
        }
        let (plain, mode, root) = without_tls(url)?;
        // The library's reasons may quote the URL, and with it the password.
        let mut config: Config = plain.parse().map_err(|_| bad_url("it cannot be read"))?;
        if config.get_hosts().is_empty() {
            return Err(bad_url("it names no host"));
        }
        let tls = match mode.as_deref() {
            Some("disable") => None,
            None if root.is_none() && config.get_hosts().iter().all(is_here) => None,
            None | Some("require" | "verify-ca" | "verify-full") => {
                Some(tls::connector(root.as_deref())?)
            }
            Some(other) => {
                return Err(bad_url(&format!("`sslmode={other}` is not known here"))
                    .hint("`require` and `verify-full` check the server's certificate and name; `disable` sends everything in the clear"));
            }
        };
        config.ssl_mode(if tls.is_some() {
            SslMode::Require
        } else {
            SslMode::Disable
        });
        bound(&mut config, patience);
        let shown = shown(&config);
        Ok(Self { config, tls, shown })
    }

    pub(crate) fn connect(&self) -> Result<Session> {
        let what = format!("connect to `{}`", self.shown);
        let client = match self.dial() {
            // Cut off on the way in: whoever does that says nothing about the next one.
            Err(error) if error.code() == Some(&SqlState::ADMIN_SHUTDOWN) => self.dial(),
            dialled => dialled,
        };
        let client = client.doing(&what)?;
        Ok(Session::Postgres(Box::new(PostgresSession::new(client))))
    }

    #[expect(clippy::disallowed_methods, reason = "the operator's database")]
    fn dial(&self) -> std::result::Result<Client, ::postgres::Error> {
        let mut client = match &self.tls {
            Some(tls) => self.config.connect(tls.clone())?,
            None => self.config.connect(NoTls)?,
        };
        // An acknowledged commit is on disk, whatever the server's default is; a stronger promise
        // of the server is left as it is.
        client.batch_execute(
            "SELECT set_config('synchronous_commit', 'on', false)
             WHERE current_setting('synchronous_commit') IN ('off', 'local')",
        )?;
        Ok(client)
    }
}

fn bound(config: &mut Config, patience: Duration) {
    let patience = patience.as_millis().max(1);
    // A server that stops between two statements must not keep the writers' lock for ever.
    let ours = format!(
        "-c search_path={SCHEMA} -c statement_timeout={patience} -c lock_timeout={patience}
         -c idle_in_transaction_session_timeout={patience}"
    );
    let options = match config.get_options() {
        Some(given) => format!("{given} {ours}"),
        None => ours,
    };
    config
        .options(&options)
        .connect_timeout(CONNECT_WITHIN)
        .tcp_user_timeout(UNANSWERED_MOST)
        .keepalives(true)
        .keepalives_idle(ASK_AFTER)
        .keepalives_interval(ASK_EVERY)
        .keepalives_retries(ASK_TIMES);
    if config.get_application_name().is_none() {
        config.application_name("glovebox");
    }
}

/// The URL without what the library does not know, and that: `sslmode` and `sslrootcert`.
fn without_tls(url: &str) -> Result<(String, Option<String>, Option<String>)> {
    let Some((base, query)) = url.split_once('?') else {
        return Ok((url.to_owned(), None, None));
    };
    let (mut mode, mut root, mut rest) = (None, None, Vec::new());
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", value)) => mode = Some(value.to_owned()),
            Some(("sslrootcert", value)) => {
                root = Some(decoded(value).ok_or_else(|| bad_url("`sslrootcert` is not text"))?);
            }
            _ => rest.push(pair),
        }
    }
    let plain = if rest.is_empty() {
        base.to_owned()
    } else {
        format!("{base}?{}", rest.join("&"))
    };
    Ok((plain, mode, root))
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Nobody listens in between.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost"
                || name
                    .parse::<std::net::IpAddr>()
                    .is_ok_and(|address| address.is_loopback())
        }
    }
}

fn shown(config: &Config) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Unix(path) => path.display().to_string(),
        Host::Tcp(name) => name.clone(),
    });
    let ports: Vec<String> = config.get_ports().iter().map(u16::to_string).collect();
    let port = if ports.is_empty() {
        String::new()
    } else {
        format!(":{}", ports.join(","))
    };
    format!(
        "postgresql://{}@{}{port}/{}",
        config.get_user().unwrap_or_default(),
        hosts.collect::<Vec<_>>().join(","),
        config.get_dbname().unwrap_or_default()
    )
}

fn bad_url(why: &str) -> Error {
    Error::new(
        Code::InvalidConfig,
        Stage::Open,
        format!("the database's URL cannot be used: {why}"),
    )
    .hint("it looks like `postgresql://user:password@host:5432/database?sslmode=verify-full`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Server> {
        Server::parse(url, Duration::from_secs(1))
    }

    #[test]
    fn the_password_is_never_shown() {
        let server = parse("postgresql://me:hunter2@127.0.0.1:5433/gb?sslmode=disable").unwrap();
        assert_eq!(server.shown, "postgresql://me@127.0.0.1:5433/gb");
        assert!(!format!("{server:?}").contains("hunter2"));
        for bad in [
            "mysql://me:hunter2@h/gb",
            "host=h password=hunter2",
            "postgresql://me:hunter2@h:hunter2/gb",
            "postgresql://me:hunter2@h/gb?sslmode=prefer",
            "postgresql://me:hunter2@h/gb?hunter2=1",
            "postgresql://me:hunter2@h/gb?sslmode=require&sslrootcert=/nothing/there.pem",
        ] {
            let error = parse(bad).unwrap_err();
            let text = serde_json::to_string(&error).unwrap();
            assert!(!text.contains("hunter2"), "{text}");
            assert!(!error.hints.is_empty(), "{text}");
        }
    }

    #[test]
    fn only_this_machine_is_spoken_to_in_the_clear_unless_it_is_asked_for() {
        for (url, secure) in [
            ("postgresql://u@127.0.0.1/d", false),
            ("postgresql://u@localhost/d", false),
            ("postgresql://u@%2Frun%2Fpostgresql/d", false),
            ("postgresql://u@db.example/d?sslmode=disable", false),
            ("postgresql://u@db.example/d", true),
            ("postgresql://u@127.0.0.1/d?sslmode=require", true),
            ("postgresql://u@localhost,db.example/d", true),
            (
                "postgresql://u@db.example/d?connect_timeout=1&sslmode=verify-full",
                true,
            ),
        ] {
            let server = parse(url).unwrap();
            assert_eq!(server.tls.is_some(), secure, "{url}");
            let mode = server.config.get_ssl_mode();
            assert_eq!(mode == SslMode::Require, secure, "{url}");
        }
    }

    #[test]
    fn percent_signs_are_undone() {
        assert_eq!(decoded("/a%20b%2Fc").as_deref(), Some("/a b/c"));
        for bad in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }
}
