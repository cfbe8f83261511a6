//! Requests from within: who they are from, and what a person at an agent's host may say.

use axum::http::Method;
use glovebox_engine::Spawner;
use serde_json::{Value, json};

use crate::client::Ask;
use crate::desk::{Desk, request};
use crate::house::House;

const MANUAL: &str = "[approvals]\nmode = \"manual\"\n";

/// An exec that waits for people, and its request.
fn waits(desk: &Desk) -> (String, String) {
    let asked = desk.run("echo yes > answered", &json!({"wait": false}));
    assert_eq!(asked.status, 202, "{asked:?}");
    let asked = asked.json();
    assert_eq!(asked["status"], "awaiting_approval", "{asked}");
    let text = |name: &str| asked[name].as_str().unwrap().to_owned();
    (text("exec_id"), text("approval_id"))
}

fn reply(approval: &str, decision: &str) -> (String, Value) {
    let path = format!("/v1/approvals/{approval}/reply");
    (path, json!({ "decision": decision }))
}

pub(crate) fn a_person_at_a_host_is_none_of_several() {
    let desk = Desk::open("[approvals]\nmode = \"manual\"\nquorum = 2\n");
    let person = desk.inside.person(&desk.agent()).unwrap();
    let asked = desk.run("rm -rf /", &json!({"wait": false})).json();
    let approval = asked["approval_id"].as_str().unwrap();
    let (path, yes) = reply(approval, "allow_once");
    let said = desk.send(&person, request(Method::POST, &path, Some(&yes)));
    assert_eq!(said.status, 403, "{said:?}");
    desk.close();
}

pub(crate) fn an_agent_asks_and_the_person_at_its_host_answers() {
    let desk = Desk::open(MANUAL);
    assert!(desk.inside.elicits());
    let (agent, person) = (desk.agent(), desk.inside.person(&desk.agent()).unwrap());
    assert_ne!(agent.id(), person.id());
    let (exec, approval) = waits(&desk);
    let (path, yes) = reply(&approval, "allow_once");
    // Never the agent itself.
    let own = desk.post(&path, &yes);
    assert_eq!(own.status, 403, "{own:?}");
    // The person sees what is asked, and answers; nothing else is open to them.
    let send =
        |method, path: &str, body: Option<&Value>| desk.send(&person, request(method, path, body));
    let shown = send(Method::GET, &format!("/v1/approvals/{approval}"), None);
    assert_eq!(shown.status, 200, "{shown:?}");
    let asked = shown.json();
    let place = asked["ask"]["workspace"].as_str().unwrap();
    assert!(
        place.ends_with("/project"),
        "who is asked sees where: {asked}"
    );
    for path in ["/v1/execs", "/v1/secrets", "/v1/workspaces", "/v1/whoami"] {
        assert_eq!(send(Method::GET, path, None).status, 403, "{path}");
    }
    let mut body = crate::house::shell("true");
    body["project_id"] = json!(desk.project());
    assert_eq!(send(Method::POST, "/v1/execs", Some(&body)).status, 403);
    let answered = send(Method::POST, &path, Some(&yes));
    assert_eq!(answered.status, 200, "{answered:?}");
    let said = &answered.json()["replies"][0];
    assert_eq!(said["via"], "elicitation", "{said}");
    assert_eq!(said["by"], "a person at mcp's host", "{said}");
    crate::house::eventually("it runs", || {
        desk.get(&format!("/v1/execs/{exec}")).json()["status"] == "succeeded"
    });
    assert_eq!(desk.file("answered"), "yes\n");
    desk.close();
}

pub(crate) fn an_operator_may_not_want_answers_from_hosts() {
    let desk = Desk::open(&format!("{MANUAL}elicitation = false\n"));
    assert!(!desk.inside.elicits());
    let (exec, approval) = waits(&desk);
    let (path, yes) = reply(&approval, "allow_once");
    let person = desk.inside.person(&desk.agent()).unwrap();
    let answered = desk.send(&person, request(Method::POST, &path, Some(&yes)));
    assert_eq!(answered.status, 403, "{answered:?}");
    let waits = desk.get(&format!("/v1/execs/{exec}")).json();
    assert_eq!(waits["status"], "awaiting_approval");
    desk.close();
}

pub(crate) fn a_person_at_a_host_answers_what_that_agent_asked() {
    let desk = Desk::open(MANUAL);
    let (space, ours) = (glovebox_model::SpaceId::local(), desk.project());
    let (exec, approval) = waits(&desk);
    let store = desk.dispatcher.store().unwrap();
    let asked = store.approval(Some(&space), &approval.parse().unwrap());
    assert_eq!(asked.unwrap().requested_by, "mcp");
    let agent = glovebox_serve::LocalAgent {
        name: "other".parse().unwrap(),
        user_id: None,
    };
    let keys = desk.dispatcher.state().keys().to_owned();
    let other = std::sync::Arc::clone(&desk.dispatcher);
    let other = glovebox_serve::Inside::open(other, &keys, agent).unwrap();
    let other = other.person(&other.caller(None).unwrap()).unwrap();
    let (path, yes) = reply(&approval, "allow_once");
    let answered = desk.send(&other, request(Method::POST, &path, Some(&yes)));
    // What another agent asked for is not there for who sits before this one.
    assert_eq!(answered.status, 404, "{answered:?}");
    let waits = desk.get(&format!("/v1/execs/{exec}")).json();
    assert_eq!(waits["status"], "awaiting_approval");
    assert_eq!(waits["project_id"], json!(ours));
    desk.close();
}

/// What waits in a directory waits for whoever has it, over restarts.
pub(crate) fn what_waits_in_a_directory_waits_for_whoever_has_it() {
    let spawners = [Spawner::fork().unwrap(), Spawner::fork().unwrap()];
    let desk = Desk::open(MANUAL);
    let [second, third] = spawners;
    let id = desk.agent().id().to_owned();
    let (exec, approval) = waits(&desk);
    let directory = desk.close();
    // Another directory's agent leaves it alone.
    let elsewhere = directory.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let opened = crate::desk::open_rules(second, directory.path(), elsewhere, Vec::new(), MANUAL);
    let other = opened.unwrap();
    let eyes = glovebox_engine::Viewer::of_space(glovebox_model::SpaceId::local());
    let record = || other.find(&eyes, &exec).unwrap();
    assert_eq!(record().status.as_str(), "awaiting_approval");
    other
        .drain(std::time::Duration::from_secs(60), &|| false)
        .unwrap();
    drop(other);
    let desk = Desk::of(third, directory, MANUAL);
    assert_eq!(desk.agent().id(), id, "it is known again");
    let person = desk.inside.person(&desk.agent()).unwrap();
    let (path, yes) = reply(&approval, "allow_once");
    let answered = desk.send(&person, request(Method::POST, &path, Some(&yes)));
    assert_eq!(answered.status, 200, "{answered:?}");
    crate::house::eventually("it runs", || {
        desk.get(&format!("/v1/execs/{exec}")).json()["status"] == "succeeded"
    });
    assert_eq!(desk.file("answered"), "yes\n");
    desk.close();
}

pub(crate) fn tools_exist_as_the_lists_of_their_agent_say() {
    let lists = "[tools]\ndeny = [\"run_code\"]\n[agent.mcp.tools]\ndeny = [\"file_*\"]\n";
    let desk = Desk::open(lists);
    let ask = |body: &Value| desk.post("/v1/tools/check", body);
    let allowed = |body: &Value| {
        let answers = ask(body).json()["answers"].as_array().unwrap().clone();
        let said = answers.iter().map(|it| it["allowed"].as_bool().unwrap());
        said.collect::<Vec<_>>()
    };
    let tools = json!(["run_code", "file_read", "run_command"]);
    // The agent's own list is in the place of everybody's.
    assert_eq!(allowed(&json!({"tools": tools})), [true, false, true]);
    let other = json!({"tools": tools, "task_ref": {"agent_id": "other"}});
    assert_eq!(ask(&other).status, 403, "it is no other agent");
    let said = ask(&json!({"tools": ["file_read"]})).json();
    assert_eq!(said["answers"][0]["key"], "agent.mcp.tools.deny", "{said}");
    assert_eq!(said["answers"][0]["source"], "agent", "{said}");
    assert_eq!(ask(&json!({"tools": []})).status, 200);
    for wrong in [json!({"tools": [""]}), json!({"tools": "x"}), json!({})] {
        assert_eq!(ask(&wrong).status, 400, "{wrong}");
    }
    desk.close();
}

pub(crate) fn nobody_brings_an_identity_over_the_network() {
    let spawner = Spawner::fork().unwrap();
    let house = House::open();
    for (name, value) in [
        ("Identity", "admin"),
        ("X-Glovebox-Identity", "mcp"),
        ("X-Forwarded-User", "mcp"),
    ] {
        let ask = Ask::new("GET", "/v1/whoami").header(name, value);
        assert_eq!(ask.send(house.address).status, 401, "{name}");
    }
    // A header is not looked at from within either: who asks is who was made sure of.
    let desk = Desk::of(spawner, crate::desk::place(), "");
    let mut forged = request(Method::GET, "/v1/whoami", None);
    let token = format!("Bearer {}", house.admin).parse().unwrap();
    forged.headers_mut().insert("authorization", token);
    // A request that nobody was found out for is nobody's, and not the agent's.
    let (parts, _) = request(Method::POST, "/mcp", None).into_parts();
    assert!(desk.inside.caller(Some(&parts)).is_none());
    let said = desk.send(&desk.agent(), forged).json();
    assert_eq!(said["role"], "agent", "{said}");
    assert_eq!(said["name"], "mcp", "{said}");
    desk.close();
    house.close();
}
