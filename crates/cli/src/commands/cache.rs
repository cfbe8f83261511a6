//! `glovebox cache`.

use std::time::Duration;

use glovebox_model::{Code, Error, Result, SpaceId, Stage};
use glovebox_workspace::{
    CacheKey, CacheMode, CacheOwner, CachePrune, CacheUse, Dir, FileTime, Layout, SeedLimits,
    UsageLimits,
};
use jiff::Timestamp;
use serde::Serialize;

use crate::args::{
    CacheCommand, CacheFillArgs, CacheLsArgs, CachePruneArgs, CacheRmArgs, CacheVerb, Global,
};
use crate::context::Context;
use crate::context::directory;
use crate::exit::Exit;
use crate::human::{age, count, size};
use crate::paint::Paint;
use crate::stop::Stop;
use crate::table::{Cell, Table};
use crate::{render, stdout};

const MEASURED: UsageLimits = UsageLimits {
    entries: 10_000_000,
    time: Duration::from_secs(60),
};
/// Of what an operator puts into a cache.
const ENTRIES: u64 = 1_000_000;
const DEPTH: usize = 64;

#[derive(Debug, Serialize)]
struct Item {
    name: String,
    /// Null for one that all share.
    user_id: Option<String>,
    shared: bool,
    bytes: u64,
    files: u64,
    complete: bool,
    used_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
struct Listed {
    items: Vec<Item>,
}

impl From<CacheUse> for Item {
    fn from(it: CacheUse) -> Self {
        let shared = it.owner == Some(CacheOwner::Everybody);
        let nsec = i32::try_from(it.used.nsec).unwrap_or(0);
        Self {
            name: it.name.to_string(),
            user_id: match it.owner {
                // What stands between a user and the agent that only named it.
                Some(CacheOwner::User(user)) => Some(user.replace('\0', " as named by ")),
                Some(CacheOwner::Everybody) | None => None,
            },
            shared,
            bytes: it.usage.bytes,
            files: it.usage.inodes,
            complete: it.usage.complete,
            used_at: Timestamp::new(it.used.sec, nsec).ok(),
        }
    }
}

pub(crate) fn run(global: &Global, command: CacheCommand) -> Result<Exit> {
    match command.verb {
        CacheVerb::Ls(args) => list(global, &args),
        CacheVerb::Fill(args) => fill(global, &args),
        CacheVerb::Rm(args) => remove(global, &args),
        CacheVerb::Prune(args) => prune(global, &args),
    }
}

fn layout(global: &Global, space: &SpaceId) -> Result<Layout> {
    let state = Context::new(global).place()?.state_dir()?;
    let root = Dir::open_trusted(state.path()).map_err(|error| error.at(Stage::Open))?;
    Layout::of_space(root, space)
}

fn list(global: &Global, args: &CacheLsArgs) -> Result<Exit> {
    // Nothing is made only to be read.
    let items = match Context::new(global).place()?.state.is_dir() {
        true => layout(global, &args.of.space)?.caches(MEASURED)?,
        false => Vec::new(),
    };
    let items: Vec<Item> = items.into_iter().map(Item::from).collect();
    if global.json {
        stdout::json(&Listed { items })?;
    } else if global.quiet {
        let names = items.iter().map(|it| format!("{}\n", it.name));
        stdout::text(&names.collect::<String>())?;
    } else if items.is_empty() {
        render::note("there is no cache; `glovebox cache fill` fills one");
    } else {
        let table = table(&items, Timestamp::now());
        stdout::text(&table.text(Paint::on(&std::io::stdout())))?;
    }
    Ok(Exit::SUCCESS)
}

fn table(items: &[Item], now: Timestamp) -> Table<5> {
    let mut table = Table::new(["NAME", "OWNER", "FILES", "SIZE", "USED"]);
    for it in items {
        let owner = match (&it.user_id, it.shared) {
            (Some(user), _) => format!("user {user}"),
            (None, true) => "shared".to_owned(),
            (None, false) => "?".to_owned(),
        };
        let used = it.used_at.map(|at| age(at, now));
        table.push([
            Cell::from(&it.name),
            Cell::from(owner),
            Cell::from(it.files.to_string()),
            Cell::from(size(it.bytes)),
            Cell::from(used.unwrap_or_else(|| "-".to_owned())),
        ]);
    }
    table
}

#[derive(Debug, Serialize)]
struct Filled {
    name: String,
    made: u64,
    skipped: Vec<LeftOut>,
}

#[derive(Debug, Serialize)]
struct LeftOut {
    path: glovebox_model::ByteString,
    why: &'static str,
}

fn fill(global: &Global, args: &CacheFillArgs) -> Result<Exit> {
    let from = directory(&args.from)?;
    let key = CacheKey::new(&args.of.space, None, args.name.clone(), CacheMode::Shared)?;
    let limits = SeedLimits {
        entries: ENTRIES,
        bytes: args.max_bytes.get(),
        depth: DEPTH,
    };
    let stop = Stop::listen()?;
    let layout = layout(global, &args.of.space)?;
    let seeded = layout.fill_cache(&key, &from, limits, &|| !stop.is_asked())?;
    let skipped = seeded.skipped.into_iter().map(|it| LeftOut {
        path: it.path,
        why: it.why.why(),
    });
    let filled = Filled {
        name: args.name.to_string(),
        made: seeded.made.len() as u64,
        skipped: skipped.collect(),
    };
    if global.json {
        stdout::json(&filled)?;
    } else if !global.quiet {
        let made = count(filled.made, "entry", "entries");
        render::note(&format!("the shared cache `{}` has {made}", filled.name));
        for it in filled.skipped.iter().take(10) {
            let path = render::one_line(&it.path.display());
            render::note(&format!("`{path}` was left out: {}", it.why));
        }
    }
    Ok(Exit::SUCCESS)
}

fn remove(global: &Global, args: &CacheRmArgs) -> Result<Exit> {
    let mode = match args.user {
        Some(_) => CacheMode::PerUser,
        None => CacheMode::Shared,
    };
    let (space, name) = (&args.of.space, &args.name);
    let key = CacheKey::new(space, args.user.as_deref(), name.clone(), mode)?;
    let layout = layout(global, space)?;
    let owner = match &args.user {
        Some(user) => CacheOwner::User(user.clone()),
        None => CacheOwner::Everybody,
    };
    let is_it = |it: &CacheUse| it.name == *name && it.owner == Some(owner.clone());
    let is_there = layout.caches(MEASURED)?.iter().any(is_it);
    if !is_there {
        let message = format!("there is no such cache `{name}`");
        return Err(Error::new(Code::NotFound, Stage::Parse, message)
            .hint("`glovebox cache ls` lists them; `--user ID` names a user's own"));
    }
    if !layout.remove_cache(&key)? {
        let message = format!("the cache `{name}` is in use");
        return Err(Error::new(Code::Conflict, Stage::Open, message)
            .hint("wait until the execs that have it end: `glovebox ps`"));
    }
    if global.json {
        stdout::json(&serde_json::json!({ "name": name.as_str(), "user_id": args.user }))?;
    } else {
        stdout::text(&format!("{name}\n"))?;
    }
    Ok(Exit::SUCCESS)
}

#[derive(Debug, Serialize)]
struct Pruned {
    removed: Vec<Item>,
    bytes: u64,
    in_use: Vec<Item>,
}

fn prune(global: &Global, args: &CachePruneArgs) -> Result<Exit> {
    let prune = CachePrune {
        unused_for: args.unused_for.map(|it| it.duration()),
        bytes: args.max_bytes.map(|it| it.get()),
    };
    let layout = layout(global, &args.of.space)?;
    let done = layout.prune_caches(prune, MEASURED, FileTime::now())?;
    let items = |caches: Vec<CacheUse>| caches.into_iter().map(Item::from).collect();
    let done = Pruned {
        removed: items(done.removed),
        bytes: done.bytes,
        in_use: items(done.in_use),
    };
    if global.json {
        stdout::json(&done)?;
        return Ok(Exit::SUCCESS);
    }
    let names = done.removed.iter().map(|it| format!("{}\n", it.name));
    stdout::text(&names.collect::<String>())?;
    if !global.quiet {
        let gone = count(
            done.removed.len() as u64,
            "cache is gone",
            "caches are gone",
        );
        let used = match done.in_use.len() {
            0 => String::new(),
            used => format!("; {used} stay, since they are in use"),
        };
        render::note(&format!("{gone}, {} freed{used}", size(done.bytes)));
    }
    Ok(Exit::SUCCESS)
}
