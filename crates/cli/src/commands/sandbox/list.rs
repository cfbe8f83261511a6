//! `glovebox sandbox ls`.

use glovebox_model::{Result, Sandbox, SandboxState};
use jiff::Timestamp;

use crate::args::{Global, SandboxLsArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::{age, clip};
use crate::paint::{Paint, Tone};
use crate::sandboxes::{SandboxFilter, Sandboxes};
use crate::table::{Cell, Table};
use crate::{render, stdout};

/// Longer names of agents and images are cut in the table; `info` has them whole.
const WIDEST: usize = 24;

pub(crate) fn run(global: &Global, args: SandboxLsArgs) -> Result<Exit> {
    let sandboxes = Sandboxes::open_if_there(&Context::new(global))?;
    let filter = SandboxFilter {
        lifetime: args.lifetime,
        agent: args.agent,
        session: args.session,
        state: args.state,
    };
    let listed = match &sandboxes {
        Some(sandboxes) => sandboxes.list(&filter)?,
        None => glovebox_api::Sandboxes::default(),
    };
    if global.json {
        stdout::json(&listed)?;
    } else if global.quiet {
        let names: String = listed
            .items
            .iter()
            .map(|it| format!("{}\n", render::one_line(&it.name)))
            .collect();
        stdout::text(&names)?;
    } else if listed.items.is_empty() {
        render::note("no sandbox is kept; `glovebox sandbox create` makes one");
    } else {
        let matches = |row: &Sandbox| sandboxes.as_ref().and_then(|it| it.matches(row));
        let rows: Vec<_> = listed.items.iter().map(|row| (row, matches(row))).collect();
        let table = table(&rows, Timestamp::now());
        stdout::text(&table.text(Paint::on(&std::io::stdout())))?;
        if rows.iter().any(|(_, matches)| *matches == Some(false)) {
            render::note(
                "`changed`: the configuration differs from the one it was created with; \
                 `glovebox sandbox recreate --mismatched` makes those anew",
            );
        }
    }
    Ok(Exit::SUCCESS)
}

fn table(rows: &[(&Sandbox, Option<bool>)], now: Timestamp) -> Table<9> {
    let mut table = Table::new([
        "NAME", "LIFETIME", "SCOPE", "BACKEND", "STATE", "IMAGE", "CONFIG", "USES", "USED",
    ]);
    for (row, matches) in rows {
        let or_dash = |text: Option<&str>| clip(text.unwrap_or("-"), WIDEST);
        let config = match matches {
            Some(true) => Cell::toned(Tone::Good, "same"),
            Some(false) => Cell::toned(Tone::Caution, "changed"),
            None => Cell::from("?"),
        };
        table.push([
            Cell::from(&row.name),
            Cell::from(row.lifetime.as_str()),
            Cell::from(or_dash(row.scope.as_deref())),
            Cell::from(backend(row)),
            Cell::toned(tone(row), row.state.as_str()),
            Cell::from(or_dash(row.config.image.as_deref())),
            config,
            Cell::from(row.uses.to_string()),
            Cell::from(age(row.last_used_at, now)),
        ]);
    }
    table
}

/// `native`, `docker`, or `docker/runsc`.
pub(super) fn backend(row: &Sandbox) -> String {
    let runtime = row
        .config
        .docker
        .as_ref()
        .and_then(|it| it.runtime.as_ref());
    match runtime {
        Some(runtime) => format!("{}/{runtime}", row.config.backend),
        None => row.config.backend.to_string(),
    }
}

pub(super) fn tone(row: &Sandbox) -> Tone {
    match (row.state, &row.trouble) {
        (SandboxState::Down, Some(_)) => Tone::Bad,
        (SandboxState::Down, None) => Tone::Plain,
        (SandboxState::Idle, _) => Tone::Good,
        (SandboxState::Acquiring | SandboxState::Busy, _) => Tone::Caution,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sample;

    #[test]
    fn a_row_says_whose_it_is_and_whether_it_is_up_to_date() {
        let mut other = sample::sandbox();
        other.scope = None;
        other.lifetime = glovebox_model::Lifetime::Shared;
        other.config.image = Some("python:3.12".to_owned());
        other.state = SandboxState::Idle;
        let own = sample::sandbox();
        let now = own.last_used_at + jiff::SignedDuration::from_secs(180);
        let shown = table(
            &[(&own, Some(true)), (&other, Some(false)), (&own, None)],
            now,
        );
        let expected = "\
NAME                   LIFETIME  SCOPE  BACKEND  STATE  IMAGE        CONFIG   USES  USED
glovebox-ann-01234567  agent     ann    native   down   -            same     2     3m
glovebox-ann-01234567  shared    -      native   idle   python:3.12  changed  2     3m
glovebox-ann-01234567  agent     ann    native   down   -            ?        2     3m
";
        assert_eq!(shown.text(Paint::Plain), expected);
    }
}
