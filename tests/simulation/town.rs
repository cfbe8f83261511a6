//! A ground with servers that programs may reach for real, and their own log of who came.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use glovebox_model::{Deed, Effect, NetworkRequest};
use serde_json::{Value, json};
use support::{Caller, Helper};

use crate::census::digest;
use crate::ground::{Ground, Simulated};

/// What the servers say, and a simulation in their place.
const PAGES: [(&str, &str); 2] = [
    (
        "/hello.git/info/refs",
        "0123456789012345678901234567890123456789\trefs/heads/main\n",
    ),
    ("/hello.git/HEAD", "ref: refs/heads/main\n"),
];

/// Proxy variables taken away: what is left knows of no proxy.
pub(crate) const UNAWARE: &str =
    "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY; ";

pub(crate) struct Town {
    pub(crate) ground: Ground,
    site: Helper,
    ports: [u64; 3],
}

/// One request, or all that was sent on a connection without any.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    /// None where a server cannot know it.
    host: Option<String>,
    port: u64,
    request: Option<(String, String)>,
    bytes: u64,
    digest: Option<String>,
}

impl Town {
    /// `None` when the caller does not exist on this host. `more` is added to the configuration.
    pub(crate) fn new(caller: Caller, more: &str) -> Option<Self> {
        Self::through(caller, &[], more)
    }

    /// Its servers are started through another program.
    pub(crate) fn through(caller: Caller, wrapper: &[&str], more: &str) -> Option<Self> {
        let ground = Ground::new(caller, "")?;
        let certificate = certify(ground.trial.home());
        let mut words = wrapper.to_vec();
        words.push(support::python());
        let mut command = Command::new(words[0]);
        let pages: serde_json::Map<String, Value> = PAGES
            .iter()
            .map(|(path, body)| ((*path).to_owned(), json!(body)))
            .collect();
        command
            .args(&words[1..])
            .args(["-c", include_str!("site.py")])
            .arg(certificate)
            .arg(Value::from(pages).to_string());
        let site = Helper::start_with(&mut command);
        let ports = ["http", "https", "raw"].map(|name| site.ready[name].as_u64().unwrap());
        let town = Self {
            ground,
            site,
            ports,
        };
        town.configure(more);
        let responses: Vec<Value> = PAGES
            .iter()
            .map(|(path, body)| {
                json!({"host": "*", "path": path, "body": body,
                "headers": {"content-type": "text/plain"}})
            })
            .chain([json!({"host": "*", "body": "ok"})])
            .collect();
        fs::write(town.answers(), json!({"responses": responses}).to_string()).unwrap();
        Some(town)
    }

    /// `shop.test` may be reached; `other.test` is there, and may not.
    pub(crate) fn configure(&self, more: &str) {
        let ca = self.ground.trial.home().join("ca.pem");
        let text = format!(
            "[settings]\nnetwork = \"allowlist\"\n\
             allow_net = [\"shop.test:HTTP\", \"shop.test:TLS\", \"shop.test:RAW\"]\n\
             [network]\nprivate = [\"shop.test:HTTP\", \"shop.test:TLS\", \"shop.test:RAW\", \"other.test:HTTP\"]\n\
             hosts = {{ \"shop.test\" = \"127.0.0.1\", \"other.test\" = \"127.0.0.1\" }}\n\
             extra_ca = \"{}\"\n{more}\n",
            ca.display()
        );
        self.ground.configure(&self.fill(&text));
    }

    fn answers(&self) -> PathBuf {
        self.ground.trial.home().join("answers.json")
    }

    /// With the ports of its servers.
    pub(crate) fn fill(&self, text: &str) -> String {
        let [http, https, raw] = self.ports.map(|it| it.to_string());
        text.replace(":HTTP", &format!(":{http}"))
            .replace(":TLS", &format!(":{https}"))
            .replace(":RAW", &format!(":{raw}"))
    }

    pub(crate) fn run(&self, line: &str) -> Simulated {
        self.ground.run(&["--timeout", "120s"], &self.fill(line))
    }

    pub(crate) fn simulate(&self, line: &str) -> Simulated {
        let answers = self.answers();
        let options = ["--timeout", "120s", "--simulate", "--responses"];
        let options = [&options[..], &[answers.to_str().unwrap()]].concat();
        self.ground.run(&options, &self.fill(line))
    }

    /// What its servers were asked since this was last called.
    pub(crate) fn log(&mut self) -> Vec<Asked> {
        let seen = self.site.ask("seen");
        let mut all: Vec<Asked> = seen.as_array().unwrap().iter().map(Asked::seen).collect();
        all.sort();
        all
    }

    pub(crate) fn end(self) {
        drop(self.site);
        self.ground.end();
    }
}

impl Asked {
    fn seen(seen: &Value) -> Self {
        let text = |key: &str| seen[key].as_str().map(str::to_owned);
        let body = text("body").unwrap();
        let pairs = body.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        let body: Vec<u8> = pairs.map(|pair| byte(pair).unwrap()).collect();
        let request = text("method").zip(text("path"));
        Self {
            host: text("host").filter(|it| !it.is_empty()),
            port: seen["port"].as_u64().unwrap(),
            bytes: body.len() as u64,
            digest: request.is_some().then(|| digest(&body)),
            request,
        }
    }

    /// As effects tell it.
    fn told(told: &NetworkRequest) -> Self {
        let request = told.method.clone().zip(told.path.clone());
        Self {
            // A server cannot know by which name a connection without a request came.
            host: request.is_some().then(|| told.host.clone()),
            port: told.port.into(),
            request,
            bytes: told.body_bytes,
            digest: told.body_digest.clone(),
        }
    }
}

/// Requests and connections that effects tell, but no questions to the DNS and no datagrams.
pub(crate) fn told(effects: &[Effect]) -> Vec<Asked> {
    let mut all: Vec<Asked> = requests(effects)
        .filter(|it| !["dns", "udp"].contains(&spoken(it).as_str()))
        .map(Asked::told)
        .collect();
    all.sort();
    all
}

pub(crate) fn requests(effects: &[Effect]) -> impl Iterator<Item = &NetworkRequest> {
    effects.iter().filter_map(|it| match &it.deed {
        Deed::NetworkRequest(request) => Some(request),
        _ => None,
    })
}

pub(crate) fn spoken(request: &NetworkRequest) -> String {
    let value = serde_json::to_value(request.spoken).unwrap();
    value.as_str().unwrap().to_owned()
}

/// An authority in `ca.pem` and, signed by it, a certificate of the names here.
fn certify(home: &Path) -> PathBuf {
    let script = "set -eu
        curve='ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
        openssl req -x509 -newkey $curve -days 2 -subj '/CN=authority of the town' \\
            -keyout ca.key -out ca.pem -addext keyUsage=critical,keyCertSign
        openssl req -newkey $curve -subj '/CN=the town' -keyout town.key -out town.csr
        printf 'subjectAltName=DNS:shop.test,DNS:other.test\\n' > town.ext
        openssl x509 -req -in town.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \\
            -extfile town.ext -out town.crt
        cat town.key town.crt ca.pem > town.pem
        rm ca.key town.csr town.ext";
    let output = Command::new("/bin/sh")
        .args(["-c", script])
        .current_dir(home)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    home.join("town.pem")
}
