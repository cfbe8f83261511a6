//! From a risky migration to one that is true, with every step in the ledger.

use serde_json::Value;
use support::Caller;

use crate::census::assert_untouched;
use crate::ground::HELD;
use crate::town::{Town, told};

const GATES: &str = r#"
[[gate]]
name = "migration"
modes = ["simulate", "transactional"]
because = "only the database is migrated, and it must still answer"
check = [
  "exit",
  { path_scope = { within = ["shop.db"] } },
  { command = { argv = ["python3", "check.py"] } },
]
"#;

const MAKE: &str = r#"
import sqlite3
db = sqlite3.connect("shop.db")
db.execute("create table prices (name, price)")
db.executemany("insert into prices values (?, ?)", [("tea", 3), ("gin", 20)])
db.commit()
"#;

const CHECK: &str = r#"
import sqlite3, sys
rows = sqlite3.connect("shop.db").execute("select name, price_eur from prices order by name").fetchall()
sys.exit(rows != [("gin", 20), ("tea", 3)])
"#;

/// Drops what it should keep, leaves a backup, and looks where it should not.
const RISKY: &str = "cp shop.db backup.db
python3 -c '
import sqlite3
db = sqlite3.connect(\"shop.db\")
db.execute(\"alter table prices rename column price to price_eur\")
db.execute(\"delete from prices where price_eur > 10\")
db.commit()
'
rm -f /etc/glovebox-test
curl -fsS -d 'table=prices' http://shop.test:HTTP/migrated > /dev/null";

fn entries(town: &Town, words: &[&str]) -> Vec<Value> {
    let all = [&["--json", "audit", "query"], words].concat();
    let ended = town.ground.glovebox(&all);
    ended.assert_code(0);
    let page: Value = serde_json::from_str(&ended.stdout).unwrap();
    let mut items = page["items"].as_array().unwrap().clone();
    // The oldest first.
    items.reverse();
    items
}

fn kinds(entries: &[Value]) -> Vec<&str> {
    entries
        .iter()
        .filter_map(|it| it["kind"].as_str())
        .collect()
}

#[test]
fn a_migration_is_simulated_blocked_mended_simulated_again_and_made_true() {
    let mut town = Town::new(Caller::Root, GATES).unwrap();
    let ground = &town.ground;
    ground.trial.put("check.py", CHECK);
    ground.trial.put("make.py", MAKE);
    ground
        .run(&[], "python3 make.py && rm make.py")
        .expect("succeeded", 0);

    let write = |line: &str| ground.trial.put("migrate.sh", town.fill(line));
    write(RISKY);
    let before = ground.census();
    let risky = ground.simulate("sh migrate.sh");
    risky.expect("held", HELD);
    assert_eq!(
        risky.blocked_by(),
        ["violations"],
        "{:#}",
        risky.record["gates"]
    );
    assert_untouched(&ground.census(), &before, "blocked");

    // Without what policy refuses, the gate still wants neither the backup nor the loss.
    write(&RISKY.replace("rm -f /etc/glovebox-test\n", ""));
    let lossy = ground.simulate("sh migrate.sh");
    lossy.expect("held", HELD);
    assert_eq!(lossy.blocked_by(), ["migration"]);
    let why = lossy.record["gates"].to_string();
    assert!(why.contains("backup.db"), "{why}");
    assert_eq!(ground.apply(lossy.id()).code, HELD);

    let mended = RISKY
        .replace("rm -f /etc/glovebox-test\n", "")
        .replace("cp shop.db backup.db\n", "")
        .replace(
            "db.execute(\"delete from prices where price_eur > 10\")\n",
            "",
        );
    write(&mended);
    // Nobody answers, so it fails, and the gate does not want that either.
    let unanswered = ground.simulate("sh migrate.sh");
    unanswered.expect("held", HELD);
    assert_eq!(unanswered.record["exit_code"], 22);

    let good = town.simulate("sh migrate.sh");
    good.expect("succeeded", 0);
    assert_eq!(town.log(), [], "nothing was sent yet");
    let shown = told(&town.ground.effects(good.id()));
    assert_eq!(shown.len(), 1);
    let rerun = town.ground.rerun(good.id());
    rerun.expect("succeeded", 0);
    assert_eq!(town.log(), shown);
    let ground = &town.ground;
    ground.run(&[], "python3 check.py").expect("succeeded", 0);
    for dropped in [risky.id(), lossy.id(), unanswered.id()] {
        ground.glovebox(&["discard", dropped]).assert_code(0);
    }

    let of_risky = entries(&town, &["--exec", risky.id()]);
    assert_eq!(kinds(&of_risky), ["planned", "outcome", "administered"]);
    assert_eq!(of_risky[1]["body"]["status"], "held");
    assert_eq!(of_risky[2]["body"]["event"], "changes.discarded");
    let of_good = entries(&town, &["--exec", good.id()]);
    assert_eq!(kinds(&of_good)[..2], ["planned", "outcome"]);
    let preview = &of_good[1]["body"]["state"]["preview"];
    assert!(preview.is_string(), "{:#}", of_good[1]);
    let of_rerun = entries(&town, &["--exec", rerun.id()]);
    assert_eq!(kinds(&of_rerun)[..2], ["planned", "outcome"]);
    let state = &of_rerun[1]["body"]["state"];
    assert_eq!(
        (&state["preview_of"], &state["preview"]),
        (&good.id().into(), preview),
        "{:#}",
        of_rerun[1]
    );
    assert_eq!(of_rerun[1]["body"]["verdict"], "keep");

    let all = entries(&town, &[]);
    for pair in all.windows(2) {
        assert_eq!(pair[1]["prev_hash"], pair[0]["hash"], "the chain is broken");
    }
    let verified = town.ground.glovebox(&["audit", "verify"]);
    verified.assert_code(0);
    assert!(
        verified.stdout.starts_with("sound: "),
        "{}",
        verified.stdout
    );
    town.end();
}
