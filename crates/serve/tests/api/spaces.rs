use serde_json::json;

use crate::client::Ask;
use crate::house::{House, shell};

pub(crate) fn another_spaces_things_are_like_things_that_never_were() {
    let house = House::open();
    let (one, other) = (house.agent("one"), house.agent("other"));
    let as_one = |ask: Ask| ask.token(&one).send(house.address);
    let mut request = shell("echo secret; echo x > /workspace/artifacts/a");
    request["project_id"] = json!("project");
    request["client_id"] = json!("mine");
    let exec = as_one(Ask::new("POST", "/v1/execs").json(&request)).json();
    let exec = exec["exec_id"].as_str().unwrap().to_owned();
    let written = as_one(Ask::new("PUT", "/v1/workspaces/project/files/f").body(b"x"));
    assert_eq!(written.status, 200);
    let random = format!("e_{}", "0123456789abcdef".repeat(2));
    let mut compared = 0;
    for prefix in ["/v1", "/sandbox"] {
        for (method, rest) in [
            ("GET", ""),
            ("GET", "/stdout"),
            ("GET", "/stderr"),
            ("GET", "/artifacts"),
            ("GET", "/artifacts/a"),
            ("GET", "/events"),
            ("POST", "/cancel"),
        ] {
            for (theirs, nobodys) in [(exec.as_str(), random.as_str()), ("mine", "never")] {
                let ask = |id: &str| {
                    let path = format!("{prefix}/execs/{id}{rest}");
                    Ask::new(method, &path).token(&other).send(house.address)
                };
                let (foreign, unknown) = (ask(theirs), ask(nobodys));
                assert_eq!(foreign.status, 404, "{method} {prefix} {rest}");
                assert_eq!(foreign.same(), unknown.same(), "{method} {prefix} {rest}");
                compared += 1;
            }
        }
    }
    for (method, path) in [
        ("GET", "/v1/workspaces/P"),
        ("DELETE", "/v1/workspaces/P"),
        ("GET", "/v1/workspaces/P/files/f"),
        ("DELETE", "/v1/workspaces/P/files/f"),
    ] {
        let ask = |project: &str| {
            Ask::new(method, &path.replace('P', project))
                .token(&other)
                .send(house.address)
        };
        assert_eq!(
            ask("project").same(),
            ask("nothing").same(),
            "{method} {path}"
        );
        assert_eq!(ask("project").status, 404);
        compared += 1;
    }
    assert_eq!(compared, 32);
    let listed = Ask::new("GET", "/v1/execs")
        .token(&other)
        .send(house.address)
        .json();
    assert_eq!(listed["items"], json!([]));
    // The same client id and the same project of another space are other things.
    let again = Ask::new("POST", "/v1/execs")
        .token(&other)
        .json(&request)
        .send(house.address);
    assert_eq!(again.status, 200, "{}", again.text());
    assert_ne!(again.json()["exec_id"], exec.as_str());
    let mut lie = shell("true");
    lie["task_ref"] = json!({"space_id": "one"});
    let lie = Ask::new("POST", "/v1/execs")
        .token(&other)
        .json(&lie)
        .send(house.address);
    assert_eq!(lie.status, 403);
    assert_eq!(
        as_one(Ask::new("GET", "/v1/workspaces/project/files/f")).body,
        b"x"
    );
}
