//! A host with servers on loopback, a configuration that lists some of them, and runs that try to
//! get there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::{Caller, Helper, Outcome, Run, Site, Trial};

/// Proxy variables taken away: what is left knows of no proxy.
pub(crate) const UNAWARE: &str =
    "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY\n";

pub(crate) struct Ground {
    pub(crate) trial: Trial,
    site: Helper,
    pub(crate) http: u64,
    pub(crate) https: u64,
    pub(crate) banner: u64,
    /// Listens, is dialled by nobody who keeps to the list.
    pub(crate) trap: u64,
    pub(crate) config: PathBuf,
}

impl Ground {
    /// `None` when the caller does not exist on this host. `more` is added to the configuration,
    /// with `HTTP`, `HTTPS` and `BANNER` for ports.
    pub(crate) fn new(caller: Caller, network: &str, more: &str) -> Option<Self> {
        Self::through(caller, &[], network, more)
    }

    /// Its servers are started through another program.
    pub(crate) fn through(
        caller: Caller,
        wrapper: &[&str],
        network: &str,
        more: &str,
    ) -> Option<Self> {
        let trial = Trial::in_memory(caller)?;
        let root = trial.home().join("site");
        fs::create_dir(&root).unwrap();
        furnish(&root);
        let certificate = certify(trial.home());
        let mut words = wrapper.to_vec();
        words.push(support::python());
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .args(["-c", include_str!("site.py")])
            .args([&root, &certificate]);
        let site = Helper::start_with(&mut command);
        let port = |name: &str| site.ready[name].as_u64().unwrap();
        let ground = Self {
            config: trial.home().join("config.toml"),
            http: port("http"),
            https: port("https"),
            banner: port("banner"),
            trap: port("trap"),
            site,
            trial,
        };
        fs::write(&ground.config, ground.configuration(network, more)).unwrap();
        Some(ground)
    }

    /// `other.test` is served and not on the list; `inside.test` is on the list and leads to
    /// loopback, which nobody agreed to.
    fn configuration(&self, network: &str, more: &str) -> String {
        let text = "
            [settings]
            network = \"allowlist\"
            timeout = \"5m\"
            allow_net = [
                \"ok.test:HTTP\", \"ok.test:BANNER\", \"ok.test:TLS\", \"also.test:TLS\",
                \"inside.test:HTTP\",
            ]
            [network]
            private = [
                \"ok.test:HTTP\", \"ok.test:BANNER\", \"ok.test:TLS\", \"ok.test:TRAP\",
                \"also.test:TLS\", \"other.test:HTTP\", \"other.test:TLS\", \"other.test:TRAP\",
            ]
            hosts = { \"ok.test\" = \"127.0.0.1\", \"also.test\" = \"127.0.0.1\",
                      \"other.test\" = \"127.0.0.1\", \"inside.test\" = \"127.0.0.1\" }
            extra_ca = \"CA\"
            ";
        let ca = self.trial.home().join("ca.pem");
        // An inline table stands on one line.
        let text = text
            .replace("127.0.0.1\",\n                      ", "127.0.0.1\", ")
            .replace("\n            ", "\n");
        self.fill(&format!("{text}{network}\n{more}\n"))
            .replace("\"CA\"", &format!("\"{}\"", ca.display()))
    }

    /// Whoever listens there is told of these events.
    pub(crate) fn tell(&self, receiver: &Site, events: &str) {
        let key = self.trial.put(
            "webhook.key",
            "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        );
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        self.list(&receiver.address().to_string());
        let hook = format!(
            "[[webhook]]\nname = \"ops\"\nurl = \"{}\"\nevents = {events}\nkey_file = \"{}\"\n",
            receiver.url("/hook"),
            key.display()
        );
        let config = fs::read_to_string(&self.config).unwrap();
        fs::write(&self.config, config + &hook).unwrap();
    }

    /// One more private destination that the operator knows.
    pub(crate) fn list(&self, address: &str) {
        let config = fs::read_to_string(&self.config).unwrap();
        let listed = config.replace("private = [", &format!("private = [\"{address}\", "));
        fs::write(&self.config, listed).unwrap();
    }

    /// With the ports of this ground.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("HTTP_PORT", &self.http.to_string())
            .replace(":HTTP", &format!(":{}", self.http))
            .replace(":TLS", &format!(":{}", self.https))
            .replace(":BANNER", &format!(":{}", self.banner))
            .replace(":TRAP", &format!(":{}", self.trap))
    }

    /// A shell script with the network of the list.
    pub(crate) fn run(&self, script: &str) -> Run<'_> {
        self.with_net("allowlist", ["/bin/sh", "-c", &self.fill(script)])
    }

    pub(crate) fn python(&self, code: &str) -> Run<'_> {
        self.with_net("allowlist", [support::python(), "-c", &self.fill(code)])
    }

    pub(crate) fn with_net<const N: usize>(&self, net: &str, words: [&str; N]) -> Run<'_> {
        self.trial
            .run(words)
            .outside("GLOVEBOX_CONFIG", &self.config)
            .with(["--net", net, "--timeout", "120s"])
    }

    /// The command itself, with the configuration.
    pub(crate) fn glovebox(&self) -> Command {
        let mut command = self.trial.glovebox();
        command.env("GLOVEBOX_CONFIG", &self.config);
        command
    }

    /// What its servers have seen since they were last asked.
    pub(crate) fn seen(&mut self) -> Vec<Value> {
        self.site.ask("seen").as_array().unwrap().clone()
    }

    pub(crate) fn kinds(&mut self) -> Vec<String> {
        let kind = |it: &Value| it["kind"].as_str().unwrap().to_owned();
        self.seen().iter().map(kind).collect()
    }

    /// Every attempt of a run, as `logs --network --json` tells it.
    pub(crate) fn attempts(&self, outcome: &Outcome) -> Vec<Value> {
        let output = self
            .glovebox()
            .args(["logs", "--network", "--json", outcome.text("exec_id")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// That an attempt was refused so, is in the record and in the log, and says the way out.
    #[track_caller]
    pub(crate) fn assert_refused(&self, outcome: &Outcome, host: &str, port: u64, code: &str) {
        let is = |it: &&Value| it["host"] == host && it["port"] == port && it["code"] == code;
        let refused = outcome.record["traffic"]["refused"].as_array();
        let recorded = refused.into_iter().flatten().find(is);
        let Some(recorded) = recorded else {
            panic!(
                "no {code} of {host}:{port} in the record: {}",
                outcome.record
            );
        };
        let attempts = self.attempts(outcome);
        let told = attempts.iter().find(is);
        let told = told.unwrap_or_else(|| panic!("no {code} of {host}:{port}: {attempts:#?}"));
        for hint in [&recorded["hint"], &told["hint"]] {
            let hint = hint
                .as_str()
                .unwrap_or_else(|| panic!("no hint: {recorded}"));
            if ["NOT_IN_ALLOWLIST", "PORT_NOT_ALLOWED"].contains(&code) {
                let rule = format!("{host}:{port}");
                assert!(
                    hint.contains(&format!("allow_net = [\"{rule}\"]")),
                    "{hint}"
                );
                let ask = format!("--net allowlist --allow-net {rule} --ask");
                assert!(hint.contains(&ask), "{hint}");
            }
        }
    }

    pub(crate) fn end(self) {
        drop(self.site);
        self.trial.end();
    }
}

/// What the site serves: a page, a repository without anything that runs, an index with one wheel.
fn furnish(root: &Path) {
    fs::write(root.join("hello"), "hello from the site\n").unwrap();
    let code = include_str!("furnish.py");
    let mut command = Command::new(support::python());
    command.args(["-c", code]).arg(root);
    for (key, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_AUTHOR_NAME", "site"),
        ("GIT_AUTHOR_EMAIL", "site@ok.test"),
        ("GIT_COMMITTER_NAME", "site"),
        ("GIT_COMMITTER_EMAIL", "site@ok.test"),
    ] {
        command.env(key, value);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// An authority in `ca.pem` and, signed by it, the certificate of every name here.
fn certify(home: &Path) -> PathBuf {
    let script = r#"
        set -eu
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
            -subj '/CN=authority of the site' -keyout ca.key -out ca.pem \
            -addext keyUsage=critical,keyCertSign
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
            -subj '/CN=the site' -keyout site.key -out site.csr
        printf 'subjectAltName=DNS:ok.test,DNS:also.test,DNS:other.test\n' > site.ext
        openssl x509 -req -in site.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
            -extfile site.ext -out site.crt
        cat site.key site.crt ca.pem > site.pem
        rm ca.key site.csr site.ext
    "#;
    let output = Command::new("/bin/sh")
        .args(["-c", script])
        .current_dir(home)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    home.join("site.pem")
}
