//! An agent's whole loop through the protocol alone: write, run, mend, simulate, ask, be told no,
//! do better, apply.

use std::fs;

use support::{Caller, McpTools};

use crate::ground::{ASKING, Ground, Mode, Way};

fn works(caller: Caller, way: Way, mode: Mode) {
    let Some(tools) = McpTools::find() else {
        return;
    };
    let Some(ground) = Ground::of(caller, way, ASKING) else {
        return;
    };
    let report = ground.script(&tools, "agent", mode);
    let asked = report["asked"].as_array().expect("questions");
    assert_eq!(asked.len(), 2, "{report}");
    // The change that was agreed to is really there.
    let prices = fs::read_to_string(ground.work().join("prices.csv")).expect("the file");
    assert_eq!(prices, "name,price_eur,count\ntea,3,4\nrum,15,2\n");
    let old = fs::read_to_string(ground.work().join("prices.old")).expect("the copy");
    assert_eq!(old, "name,price,count\ntea,3,4\nrum,15,2\n");
    assert!(ground.work().join("migrated").exists());
    ground.end();
}

#[test]
fn an_agent_of_the_first_era_works_over_stdio() {
    works(Caller::Root, Way::Stdio, Mode::First);
}

#[test]
fn an_agent_of_the_first_era_works_over_http() {
    works(Caller::Root, Way::Http, Mode::First);
}

#[test]
fn an_agent_of_today_works_over_stdio() {
    works(Caller::Root, Way::Stdio, Mode::Auto);
}

#[test]
fn an_agent_of_today_works_over_http() {
    works(Caller::Root, Way::Http, Mode::Auto);
}

#[test]
fn an_agent_of_an_ordinary_user_works_over_stdio() {
    works(Caller::User, Way::Stdio, Mode::Auto);
}
