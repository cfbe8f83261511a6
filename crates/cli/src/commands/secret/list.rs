//! `glovebox secret ls`.

use glovebox_model::{Result, Secret};
use jiff::Timestamp;

use super::keeping::Keeping;
use crate::args::{Global, SecretLsArgs};
use crate::exit::Exit;
use crate::human::age;
use crate::paint::Paint;
use crate::render;
use crate::stdout;
use crate::table::{Cell, Table};

pub(super) fn run(global: &Global, keeping: &Keeping, args: &SecretLsArgs) -> Result<Exit> {
    let page = keeping.list(usize::from(args.limit), args.cursor.as_ref())?;
    if global.json {
        stdout::json(&page)?;
    } else if global.quiet {
        let names = page.items.iter().map(|it| format!("{}\n", it.name));
        stdout::text(&names.collect::<String>())?;
    } else if page.items.is_empty() {
        render::note("there are no secrets; `glovebox secret set NAME` makes one");
    } else {
        let paint = Paint::on(&std::io::stdout());
        stdout::text(&table(&page.items, Timestamp::now()).text(paint))?;
        if let Some(cursor) = page.next {
            render::note(&format!("there are more: `--cursor {cursor}`"));
        }
    }
    Ok(Exit::SUCCESS)
}

fn table(secrets: &[Secret], now: Timestamp) -> Table<6> {
    let mut table = Table::new(["NAME", "VERSION", "GIVEN AS", "HOSTS", "SET", "USED"]);
    for secret in secrets {
        let deliveries: Vec<&str> = secret.deliveries.iter().map(|it| it.as_str()).collect();
        let hosts: Vec<String> = secret.hosts.iter().map(ToString::to_string).collect();
        table.push([
            Cell::from(secret.name.as_str()),
            Cell::from(secret.version.to_string()),
            Cell::from(deliveries.join(", ")),
            Cell::from(hosts.join(", ")),
            Cell::from(age(secret.updated_at, now)),
            Cell::from(
                secret
                    .last_used_at
                    .map_or("never".to_owned(), |at| age(at, now)),
            ),
        ]);
    }
    table
}
