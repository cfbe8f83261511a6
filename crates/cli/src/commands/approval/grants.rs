//! `glovebox approval grants` and `revoke`.

use glovebox_model::{Grant, Result};
use glovebox_store::GrantFilter;
use jiff::Timestamp;

use crate::approvals::Approvals;
use crate::args::{Global, GrantsArgs, RevokeArgs};
use crate::exit::Exit;
use crate::human::{age, clip};
use crate::paint::{Paint, Tone};
use crate::render::{self, one_line};
use crate::stdout;
use crate::table::{Cell, Table};

const KIND_MOST: usize = 48;

pub(super) fn list(global: &Global, approvals: &Approvals, args: GrantsArgs) -> Result<Exit> {
    let page = approvals.grants(GrantFilter {
        space: None,
        conversation_id: args.conversation,
        include_revoked: args.all,
        limit: usize::from(args.limit),
        cursor: args.cursor,
    })?;
    if global.json {
        stdout::json(&page)?;
    } else if global.quiet {
        let ids = page.items.iter().map(|it| format!("{}\n", it.id));
        stdout::text(&ids.collect::<String>())?;
    } else if page.items.is_empty() {
        render::note("nobody has allowed a kind; `glovebox approval approve ID --kind` does");
    } else {
        let paint = Paint::on(&std::io::stdout());
        stdout::text(&table(&page.items, Timestamp::now()).text(paint))?;
        if let Some(cursor) = page.next {
            render::note(&format!("there are more: `--cursor {cursor}`"));
        }
    }
    Ok(Exit::SUCCESS)
}

fn table(grants: &[Grant], now: Timestamp) -> Table<7> {
    let mut table = Table::new([
        "ID",
        "CONVERSATION",
        "KIND",
        "BY",
        "USED",
        "IN FORCE",
        "AGE",
    ]);
    for grant in grants {
        let (tone, force) = match grant.revoked_at {
            None => (Tone::Good, "yes"),
            Some(_) => (Tone::Bad, "revoked"),
        };
        table.push([
            Cell::from(grant.id.as_str()),
            Cell::from(&grant.conversation_id),
            Cell::from(clip(&one_line(&grant.shown), KIND_MOST)),
            Cell::from(&grant.granted_by),
            Cell::from(grant.used.to_string()),
            Cell::toned(tone, force),
            Cell::from(age(grant.created_at, now)),
        ]);
    }
    table
}

pub(super) fn revoke(global: &Global, approvals: &Approvals, args: &RevokeArgs) -> Result<Exit> {
    let grant = approvals.revoke(&args.id)?;
    if global.json {
        stdout::json(&grant)?;
    } else if !global.quiet {
        let shown = one_line(&grant.shown);
        render::note(&format!(
            "`{}` ({shown}) is revoked; people are asked again",
            grant.id
        ));
    }
    Ok(Exit::SUCCESS)
}
