use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use glovebox_serve::{Options, Stop, TlsFiles, run};
use serde_json::json;

use crate::client::Ask;
use crate::house::{House, eventually, shell};

fn over(path: &PathBuf, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

pub(crate) fn a_unix_socket_is_for_its_owner() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    // Left over from a server that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let socket = path.clone();
    let house = House::with(|options| options.socket = Some(socket));
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let ask = Ask::new("GET", "/v1/whoami").header("Host", "localhost");
    assert!(over(&path, &ask.bytes(house.address)).starts_with("HTTP/1.1 401"));
    let ask = ask.token(&house.admin);
    assert!(over(&path, &ask.bytes(house.address)).starts_with("HTTP/1.1 200"));
    let mut options = Options::new(directory.path());
    options.listen = "127.0.0.1:0".to_owned();
    options.socket = Some(path.clone());
    let second = run(
        options,
        house.dispatcher.clone(),
        Stop::default(),
        None,
        |_| {},
    );
    assert!(
        second
            .unwrap_err()
            .message
            .contains("another server listens there")
    );
    house.close();
    assert!(!path.exists(), "its file goes with it");
}

pub(crate) fn a_server_closes_in_order() {
    let house = House::with(|options| options.patience = std::time::Duration::from_secs(60));
    let address = house.address;
    let mut request = shell("until [ -e go ]; do sleep 0.05; done; echo end");
    request["client_id"] = json!("last");
    request["project_id"] = json!("p");
    let ask = Ask::new("POST", "/v1/execs")
        .token(&house.admin)
        .json(&request);
    let waiting = std::thread::spawn(move || ask.send(address));
    eventually("it runs", || {
        let last = house.get("/v1/execs/last");
        last.status == 200 && last.json()["status"] == "running"
    });
    house.stop();
    eventually("it is not ready any more", || {
        Ask::new("GET", "/readyz").send(address).status == 503
    });
    let refused = house.post("/v1/execs", &shell("true"));
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (503, "shutting_down")
    );
    assert!(refused.header("retry-after").is_some());
    assert_eq!(
        house.get("/healthz").status,
        200,
        "what is asked is answered"
    );
    let work = house.directory.path().join("state/projects/p/work");
    std::fs::write(work.join("go"), "").unwrap();
    let answer = waiting.join().unwrap();
    assert_eq!(answer.json()["exit_code"], 0, "who waited got the answer");
    assert_eq!(house.ended().drained.ended, 1);
    assert!(std::net::TcpStream::connect(address).is_err());
}

pub(crate) fn files_of_tls_are_named_when_they_are_no_good() {
    let house = House::open();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (empty, missing) = (file("empty.pem", ""), directory.path().join("missing.pem"));
    for (certificates, key, named) in [
        (missing.clone(), empty.clone(), "missing.pem"),
        (empty.clone(), missing, "empty.pem"),
    ] {
        let mut options = Options::new(directory.path());
        options.listen = "127.0.0.1:0".to_owned();
        options.tls = Some(TlsFiles { certificates, key });
        let refused = run(
            options,
            house.dispatcher.clone(),
            Stop::default(),
            None,
            |_| {},
        );
        assert!(refused.unwrap_err().message.contains(named));
    }
}
