//! `glovebox serve`.

use std::io::Write;
use std::net::ToSocketAddrs;
use std::time::Duration;

use glovebox_engine::{
    Dispatcher, Drained, ServerConfig, ServerPurpose, Spawner, Wait, host_facts,
};
use glovebox_model::{Code, Error, Result, Stage};
use glovebox_policy::Surface;
use glovebox_serve::{Listening, Options, Stop, Times, TlsFiles, TokenKey, bootstrap};
use rustix::process::{Resource, getrlimit, setrlimit};

use super::log;
use crate::args::{Global, ServeArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::count;
use crate::render;

pub(crate) fn run(global: &Global, args: &ServeArgs) -> Result<Exit> {
    check_exposure(args)?;
    check_variables(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))?;
    let context = Context::new(global);
    let place = context.place()?;
    let config = context.config_of_server()?;
    let state = place.state_dir()?;
    // Those that end sandboxes in time are to stay as long as the server.
    stay_last();
    // Before anything that might start a thread.
    let spawner = Spawner::fork().map_err(|error| {
        Error::new(
            Code::SetupFailed,
            Stage::Admit,
            "cannot start the process that starts sandboxes",
        )
        .caused_by(error)
    })?;
    raise_open_files();
    log::begin(args.log_format, log::Usual::Info)?;
    let dispatcher = Dispatcher::open(
        ServerConfig {
            state,
            database: place.database,
            config,
            shadow: context.shadow()?,
            host: host_facts(),
            concurrency_ceiling: args.max_concurrent,
            secrets_key: context.secrets_key()?,
            shared: None,
            purpose: ServerPurpose::Callers,
        },
        spawner,
    )?;
    dispatcher.start_sessions_with(context.session_command(Surface::Server, None)?);
    log::mask_with(dispatcher.log_mask());
    context.report_recovered(dispatcher.recovered());
    let (path, keys) = (dispatcher.state().path(), dispatcher.state().keys());
    let key = TokenKey::load_or_create(keys)?;
    let token = bootstrap(dispatcher.store()?, &key, path)?;
    let options = options(args, Options::new(keys));
    let told = |listening: &Listening| {
        if !global.quiet {
            render::note(&format!("an admin token is in `{}`", token.display()));
            if let Some(socket) = &listening.socket {
                render::note(&format!("also listening on `unix:{}`", socket.display()));
            }
        }
        // Last: whoever waits for this line may begin.
        let _ = writeln!(std::io::stderr(), "listening on {}", listening.url());
    };
    let reread = || context.config_of_server();
    let summary = glovebox_serve::run(options, dispatcher, Stop::default(), Some(&reread), told);
    #[cfg(feature = "otel")]
    super::traces::finish();
    let summary = summary?;
    if !global.quiet {
        render::note(&farewell(&summary.drained));
    }
    Ok(Exit::SUCCESS)
}

fn options(args: &ServeArgs, usual: Options) -> Options {
    let files = args.tls_cert.clone().zip(args.tls_key.clone());
    Options {
        listen: args.listen.clone(),
        socket: args.unix.clone(),
        tls: files.map(|(certificates, key)| TlsFiles { certificates, key }),
        allow_hosts: args.allow_host.clone(),
        connections: usize::try_from(args.max_connections).unwrap_or(Options::CONNECTIONS),
        patience: Duration::from_millis(args.drain.get()),
        times: Times {
            head: Wait::Request.within(usual.times.head),
            body_pause: Wait::Request.within(usual.times.body_pause),
            recheck: Wait::Token.within(usual.times.recheck),
            ..usual.times
        },
        ..usual
    }
}

/// A token that is sent in the clear over a network belongs to everybody on the way.
fn check_exposure(args: &ServeArgs) -> Result<()> {
    if args.tls_cert.is_some() || args.insecure_plain_http {
        return Ok(());
    }
    // What is no address is for the listener to say.
    let mut addresses = args.listen.to_socket_addrs().into_iter().flatten();
    if addresses.all(|address| address.ip().to_canonical().is_loopback()) {
        return Ok(());
    }
    let listen = &args.listen;
    Err(Error::new(
        Code::InvalidArgument,
        Stage::Parse,
        format!("`{listen}` can be reached from other machines, and there is no TLS"),
    )
    .hint("give `--tls-cert FILE --tls-key FILE`, or listen on `127.0.0.1` behind a proxy")
    .hint(
        "`--insecure-plain-http` serves it all the same: tokens and output can be read on the way",
    ))
}

/// What `glovebox` reads. What sandboxes and tests are told by is not for the operator.
const VARIABLES: [&str; 11] = [
    "GLOVEBOX_CONFIG",
    "GLOVEBOX_DATABASE",
    "GLOVEBOX_KEYS_DIR",
    "GLOVEBOX_LOG",
    "GLOVEBOX_SECRETS_KEY",
    "GLOVEBOX_SECRETS_KEY_FILE",
    "GLOVEBOX_SERVER",
    "GLOVEBOX_SHADOW_POLICY",
    "GLOVEBOX_SKILLS_DIR",
    "GLOVEBOX_STATE_DIR",
    "GLOVEBOX_TOKEN",
];
const OTHERS: [&str; 3] = ["GLOVEBOX_BIN", "GLOVEBOX_EXEC_ID", "GLOVEBOX_RELEASE_BIN"];

/// A misspelt variable would leave a server with other settings than its operator believes.
fn check_variables(names: impl Iterator<Item = String>) -> Result<()> {
    let own = |name: &String| name.starts_with("GLOVEBOX_") && !name.starts_with("GLOVEBOX_TEST_");
    let is_known =
        |name: &str| VARIABLES.contains(&name) || OTHERS.contains(&name) || is_for_tests(name);
    let Some(name) = names.filter(own).find(|name| !is_known(name)) else {
        return Ok(());
    };
    let message = format!("the environment variable `{name}` is not known");
    Err(Error::new(Code::InvalidConfig, Stage::Parse, message)
        .hint(format!("known are `{}`", VARIABLES.join("`, `")))
        .hint(format!("take it out: `unset {name}`")))
}

#[cfg(debug_assertions)]
fn is_for_tests(name: &str) -> bool {
    ["GLOVEBOX_PAUSE_AT", "GLOVEBOX_PATIENCE"].contains(&name)
        || name.starts_with("GLOVEBOX_MUTATION")
}

#[cfg(not(debug_assertions))]
fn is_for_tests(_: &str) -> bool {
    false
}

/// When memory runs out on the host, whatever runs in a sandbox goes first and the server last. Only
/// root may say so for itself; what was said for it by others, and is lower, stays.
fn stay_last() {
    const SCORE: i32 = -900;
    let file = "/proc/self/oom_score_adj";
    let now = std::fs::read_to_string(file).unwrap_or_default();
    if now.trim().parse::<i32>().is_ok_and(|now| now > SCORE) {
        let _ = std::fs::write(file, SCORE.to_string());
    }
}

/// Every connection and every exec needs some. Who may not have more goes on with fewer.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum || limit.maximum.is_none() {
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

fn farewell(drained: &Drained) -> String {
    let Drained {
        ended,
        stopped,
        killed,
        left,
        queued,
    } = *drained;
    let parts = [
        (ended, "ended in time"),
        (stopped, "stopped when asked"),
        (killed, "killed"),
        (left, "left behind: lost at the next start"),
        (queued, "not started: waiting for the next start"),
    ];
    let told: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", count(*number as u64, "exec", "execs")))
        .collect();
    match told.is_empty() {
        true => "closed; nothing was running".to_owned(),
        false => format!("closed: {}", told.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn args(line: &str) -> ServeArgs {
        let words = "glovebox serve"
            .split(' ')
            .chain(line.split_ascii_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Command::Serve(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nobody_serves_a_network_in_the_clear_by_accident() {
        for fine in [
            "",
            "--listen 127.0.0.1:0",
            "--listen [::1]:0",
            "--listen localhost:0",
            "--listen 0.0.0.0:1 --tls-cert c --tls-key k",
            "--listen 0.0.0.0:1 --insecure-plain-http",
            "--listen nonsense",
        ] {
            assert!(check_exposure(&args(fine)).is_ok(), "{fine}");
        }
        for exposed in [
            "--listen 0.0.0.0:1",
            "--listen [::]:1",
            "--listen 192.0.2.1:1",
        ] {
            let error = check_exposure(&args(exposed)).unwrap_err();
            assert!(
                error.hints.join(" ").contains("--insecure-plain-http"),
                "{exposed}"
            );
        }
    }

    #[test]
    fn a_misspelt_variable_starts_no_server() {
        let check = |name: &str| check_variables([name.to_owned()].into_iter());
        for known in ["PATH", "GLOVEBOX_DATABASE", "GLOVEBOX_TEST_SEED"] {
            assert!(check(known).is_ok(), "{known}");
        }
        let error = check("GLOVEBOX_DATABSE").unwrap_err();
        assert!(error.message.contains("GLOVEBOX_DATABSE"), "{error}");
        assert!(error.hints[0].contains("GLOVEBOX_DATABASE"), "{error}");
    }

    #[test]
    fn flags_become_options() {
        let line = "--unix /s --allow-host a --allow-host b --drain 5s --max-connections 9";
        let options = options(&args(line), Options::new("/keys"));
        assert_eq!(options.listen, Options::LISTEN);
        assert_eq!(options.socket.as_deref(), Some(std::path::Path::new("/s")));
        assert_eq!(options.allow_hosts, ["a", "b"]);
        assert_eq!(options.patience, Duration::from_secs(5));
        assert_eq!(options.connections, 9);
        assert!(options.tls.is_none());
        let usual = Duration::from_millis(args("").drain.get());
        assert_eq!(usual, Options::PATIENCE);
    }

    #[test]
    fn the_last_words_count() {
        assert_eq!(farewell(&Drained::default()), "closed; nothing was running");
        let drained = Drained {
            ended: 2,
            killed: 1,
            queued: 3,
            ..Drained::default()
        };
        assert_eq!(
            farewell(&drained),
            "closed: 2 execs ended in time, 1 exec killed, \
             3 execs not started: waiting for the next start"
        );
    }
}
