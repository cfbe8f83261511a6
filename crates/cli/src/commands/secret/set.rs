//! `glovebox secret set`.

use glovebox_api::{Destination, SecretRequest, SecretValue};
use glovebox_model::{Delivery, Result};

use super::keeping::Keeping;
use super::value;
use crate::args::{Global, SecretSetArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::render;
use crate::stdout;

pub(super) fn run(global: &Global, context: &Context<'_>, args: SecretSetArgs) -> Result<Exit> {
    let keeping = Keeping::open(context)?;
    let given = value::read(&args.name, args.from_file.as_deref(), args.keep_newline)?;
    let hosts = args.host.iter().map(|it| Destination(it.to_string()));
    let request = SecretRequest {
        value_base64: SecretValue(given.value),
        hosts: (!args.host.is_empty()).then(|| hosts.collect()),
        deliveries: (!args.deliver.is_empty()).then(|| args.deliver.into_iter().collect()),
    };
    let secret = keeping.set(&args.name, &request)?;
    if given.trimmed && !global.quiet {
        render::note("the newline at its end was left out; `--keep-newline` keeps it");
    }
    if global.json {
        stdout::json(&secret)?;
        return Ok(Exit::SUCCESS);
    }
    if !global.quiet {
        let (name, version) = (&secret.name, secret.version);
        render::note(&format!("`{name}` is set (version {version})"));
        if secret.deliveries.contains(&Delivery::Env) {
            render::note("as `env`, whatever reads the program's environment reads it");
        }
        let how = match secret.deliveries.contains(&Delivery::File) {
            true => String::new(),
            false => secret
                .deliveries
                .first()
                .map_or(String::new(), |it| format!("={it}")),
        };
        render::note(&format!("a program gets it with `--secret {name}{how}`"));
    }
    Ok(Exit::SUCCESS)
}
