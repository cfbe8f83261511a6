//! `glovebox secret grant`, `grants` and `revoke`.

use std::time::Duration;

use glovebox_api::{Id, SecretGrantRequest};
use glovebox_model::{Result, SecretGrant};
use glovebox_store::SecretGrantFilter;
use jiff::{SignedDuration, Timestamp};

use super::keeping::Keeping;
use super::tell_of_holds;
use crate::args::{Global, GrantOrSecret, SecretGrantArgs, SecretGrantsArgs, SecretRevokeArgs};
use crate::exit::Exit;
use crate::human::{age, time};
use crate::paint::{Paint, Tone};
use crate::render::{self, one_line};
use crate::stdout;
use crate::table::{Cell, Table};

pub(super) fn grant(global: &Global, keeping: &Keeping, args: SecretGrantArgs) -> Result<Exit> {
    let lasts = SignedDuration::try_from(Duration::from_millis(args.lasts.get())).ok();
    let end = lasts.and_then(|it| Timestamp::now().saturating_add::<SignedDuration>(it).ok());
    let grant = keeping.grant(&SecretGrantRequest {
        secret: args.name,
        conversation_id: args.conversation.map(Id),
        agent_id: args.agent.map(Id),
        deliveries: (!args.deliver.is_empty()).then(|| args.deliver.into_iter().collect()),
        expires_at: end,
    })?;
    if global.json {
        stdout::json(&grant)?;
    } else if global.quiet {
        stdout::text(&format!("{}\n", grant.grant_id))?;
    } else {
        let (id, name) = (&grant.grant_id, &grant.secret);
        render::note(&format!(
            "`{name}` is granted until {}: `{id}`",
            time(grant.expires_at)
        ));
    }
    Ok(Exit::SUCCESS)
}

pub(super) fn list(global: &Global, keeping: &Keeping, args: SecretGrantsArgs) -> Result<Exit> {
    let page = keeping.grants(&SecretGrantFilter {
        secret: args.secret,
        include_ended: args.all,
        limit: usize::from(args.limit),
        cursor: args.cursor,
        ..SecretGrantFilter::default()
    })?;
    if global.json {
        stdout::json(&page)?;
    } else if global.quiet {
        let ids = page.items.iter().map(|it| format!("{}\n", it.grant_id));
        stdout::text(&ids.collect::<String>())?;
    } else if page.items.is_empty() {
        render::note("nobody has a secret for more than one exec; `glovebox secret grant` does it");
    } else {
        let paint = Paint::on(&std::io::stdout());
        stdout::text(&table(&page.items, Timestamp::now()).text(paint))?;
        if let Some(cursor) = page.next {
            render::note(&format!("there are more: `--cursor {cursor}`"));
        }
    }
    Ok(Exit::SUCCESS)
}

fn table(grants: &[SecretGrant], now: Timestamp) -> Table<7> {
    let header = [
        "ID",
        "SECRET",
        "CONVERSATION",
        "AGENT",
        "GIVEN AS",
        "BY",
        "IN FORCE",
    ];
    let mut table = Table::new(header);
    for grant in grants {
        let (tone, force) = match grant.revoked_at {
            Some(_) => (Tone::Bad, "revoked".to_owned()),
            None if grant.expires_at <= now => (Tone::Bad, "expired".to_owned()),
            None => (Tone::Good, format!("for {}", age(now, grant.expires_at))),
        };
        let deliveries: Vec<&str> = grant.deliveries.iter().map(|it| it.as_str()).collect();
        let any = |id: &Option<String>| id.as_deref().map_or("any".to_owned(), one_line);
        table.push([
            Cell::from(grant.grant_id.as_str()),
            Cell::from(grant.secret.as_str()),
            Cell::from(any(&grant.conversation_id)),
            Cell::from(any(&grant.agent_id)),
            Cell::from(deliveries.join(", ")),
            Cell::from(&grant.granted_by),
            Cell::toned(tone, &force),
        ]);
    }
    table
}

pub(super) fn revoke(global: &Global, keeping: &Keeping, args: SecretRevokeArgs) -> Result<Exit> {
    let revocation = match &args.what {
        GrantOrSecret::Grant(id) => keeping.revoke(id)?,
        GrantOrSecret::Secret(name) => keeping.revoke_all(name)?,
    };
    if global.json {
        stdout::json(&revocation)?;
    } else if !global.quiet {
        for grant in &revocation.revoked {
            render::note(&format!(
                "`{}` of `{}` is revoked; people are asked again",
                grant.grant_id, grant.secret
            ));
        }
        if revocation.revoked.is_empty() {
            render::note("no grant of it was in force");
        }
        tell_of_holds(&revocation.still_held);
    }
    Ok(Exit::SUCCESS)
}
