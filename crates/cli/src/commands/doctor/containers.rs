//! Containers, where a program for them is there. They are a second way to run something, so nothing
//! is wrong when they cannot be used.

use std::path::Path;

use glovebox_engine::{EngineFacts, probe_docker};
use glovebox_model::{Correlation, Lifetime, SpaceId};
use glovebox_policy::Config;

use super::report::Check;

const NAME: &str = "containers";

/// `None` where no program for them is installed.
pub(super) fn check(config: &Config, state: Option<&Path>) -> Option<Check> {
    let ids = Correlation::of_space(SpaceId::local());
    let config = config.docker_for(&ids, Lifetime::Exec);
    if !is_installed(&config.cli) {
        return None;
    }
    // Only to be looked at: any directory that is there will do.
    let temporary = std::env::temp_dir();
    let state = state.filter(|it| it.exists()).unwrap_or(&temporary);
    Some(match probe_docker(config, state) {
        Ok(facts) => Check::ok(NAME, told(&facts)),
        Err(error) => {
            let fix = (!error.hints.is_empty()).then(|| error.hints.join("; "));
            Check::absent(NAME, error.to_string(), fix)
        }
    })
}

fn told(facts: &EngineFacts) -> String {
    let EngineFacts {
        cli,
        server_version,
        runtimes,
        ..
    } = facts;
    let runtimes: Vec<&str> = runtimes.keys().map(String::as_str).collect();
    let runtimes = runtimes.join(", ");
    format!(
        "{cli}, engine {server_version}, runtimes {runtimes}; `glovebox backend ls` says what each \
         gives"
    )
}

fn is_installed(cli: &str) -> bool {
    if cli.starts_with('/') {
        return Path::new(cli).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.is_absolute() && dir.join(cli).exists())
}
