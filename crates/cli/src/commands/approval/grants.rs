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
        include_ended: args.all,
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

fn table(grants: &[Grant], now: Timestamp) -> Table<8> {
    let mut table = Table::new([
        "ID",
        "CONVERSATION",
        "KIND",
        "BY",
        "USED",
        "LAST USED",
        "ENDS",
        "AGE",
    ]);
    for grant in grants {
        let (tone, ends) = match grant.expires_at {
            Some(end) if grant.is_in_force(now) => (Tone::Good, format!("in {}", age(now, end))),
            _ if grant.revoked_by.is_some() => (Tone::Bad, "revoked".to_owned()),
            _ => (Tone::Bad, "expired".to_owned()),
        };
        let last_used = grant.last_used_at.map(|at| age(at, now));
        table.push([
            Cell::from(grant.id.as_str()),
            Cell::from(&grant.conversation_id),
            Cell::from(clip(&one_line(&grant.shown), KIND_MOST)),
            Cell::from(&grant.granted_by),
            Cell::from(grant.used.to_string()),
            Cell::from(last_used.unwrap_or_else(|| "never".to_owned())),
            Cell::toned(tone, &ends),
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
