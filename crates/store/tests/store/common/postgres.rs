//! A PostgreSQL database of a test's own: in the cluster that `GLOVEBOX_TEST_POSTGRES` names by the
//! URL of its superuser, or in one that is started for this test alone.

#![expect(
    clippy::disallowed_methods,
    reason = "a test speaks to what it started"
)]

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use postgres::{Client, NoTls};
use tempfile::TempDir;

pub(crate) struct Database {
    pub(crate) url: String,
    name: String,
    admin: String,
    cluster: Option<Cluster>,
}

struct Cluster {
    dir: TempDir,
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres")
}

impl Cluster {
    /// `None` when there is no PostgreSQL on this machine.
    fn start() -> Option<(Self, String)> {
        let dir = tempfile::tempdir().unwrap();
        let started = Command::new(script())
            .arg("start")
            .arg(dir.path())
            .output()
            .unwrap();
        if started.status.code() == Some(69) {
            return None;
        }
        assert!(started.status.success(), "{started:?}");
        let url = String::from_utf8(started.stdout).unwrap().trim().to_owned();
        Some((Self { dir }, url))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = Command::new(script())
            .arg("stop")
            .arg(self.dir.path())
            .status();
    }
}

impl Database {
    /// `None`, loudly, where PostgreSQL is missing; in CI that is a failure.
    pub(crate) fn create() -> Option<Self> {
        match std::env::var("GLOVEBOX_TEST_POSTGRES") {
            Ok(admin) => Some(Self::make(admin, None, None)),
            Err(_) => Self::create_alone(),
        }
    }

    /// In a cluster that no other test uses.
    pub(crate) fn create_alone() -> Option<Self> {
        let Some((cluster, admin)) = Cluster::start() else {
            let skipped = "no PostgreSQL: `apt-get install postgresql`";
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{skipped}");
            eprintln!("SKIPPED: {skipped}");
            return None;
        };
        Some(Self::make(admin, Some(cluster), None))
    }

    fn make(admin: String, cluster: Option<Cluster>, template: Option<&str>) -> Self {
        let mut random = [0; 8];
        getrandom::fill(&mut random).unwrap();
        let name = format!("gb_test_{:016x}", u64::from_be_bytes(random));
        let template = template.unwrap_or("template0");
        connect(&admin)
            .batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template}"))
            .unwrap();
        let (server, _) = admin.rsplit_once('/').unwrap();
        Self {
            url: format!("{server}/{name}"),
            name,
            admin,
            cluster,
        }
    }

    /// Everything that is in it now. Whoever is connected to it loses the connection.
    pub(crate) fn copy(&self) -> Self {
        self.disconnect_all();
        Self::make(self.admin.clone(), None, Some(&self.name))
    }

    /// Ends every connection to it, and returns how many there were.
    pub(crate) fn disconnect_all(&self) -> u64 {
        let mut client = connect(&self.admin);
        let ended = client
            .query(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1",
                &[&self.name],
            )
            .unwrap();
        ended.len() as u64
    }

    /// Makes the server offer TLS with a certificate of its own for this name, as in
    /// `IP:127.0.0.1`. Returns the certificate's file.
    pub(crate) fn offer_tls(&self, name: &str) -> PathBuf {
        let dir = self.cluster.as_ref().unwrap().dir.path().join("cluster");
        let (key, certificate) = (dir.join("tls.key"), dir.join("tls.crt"));
        let config = dir.join("tls.conf");
        let text = format!(
            "[req]\ndistinguished_name=dn\nx509_extensions=ext\n[dn]\n\
             [ext]\nsubjectAltName={name}\nbasicConstraints=critical,CA:FALSE\n"
        );
        std::fs::write(&config, text).unwrap();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
            .args(["-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=test"])
            .arg("-config")
            .arg(&config)
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        // The server wants its key to be its own.
        let owner = std::fs::metadata(&dir).unwrap();
        for file in [&key, &certificate] {
            std::os::unix::fs::chown(file, Some(owner.uid()), None).unwrap();
        }
        let mut client = connect(&self.admin);
        for (setting, file) in [("ssl_key_file", &key), ("ssl_cert_file", &certificate)] {
            let value = file.display();
            client
                .batch_execute(&format!("ALTER SYSTEM SET {setting} = '{value}'"))
                .unwrap();
        }
        client.batch_execute("ALTER SYSTEM SET ssl = on").unwrap();
        self.reload("ssl", "on");
        certificate
    }

    pub(crate) fn reload(&self, setting: &str, expected: &str) {
        let mut client = connect(&self.admin);
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
        let shown = || -> String {
            let row = connect(&self.admin).query_one(&format!("SHOW {setting}"), &[]);
            row.unwrap().get(0)
        };
        while shown() != expected {}
    }

    /// Whether anybody can connect; who is connected stays so.
    pub(crate) fn allow_connections(&self, allow: bool) {
        let name = &self.name;
        connect(&self.admin)
            .batch_execute(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {allow}"))
            .unwrap();
    }

    /// Whom every commit waits for; nobody when it is empty.
    pub(crate) fn wait_for_standby(&self, name: &str) {
        let mut client = connect(&self.admin);
        client
            .batch_execute(&format!(
                "ALTER SYSTEM SET synchronous_standby_names = '{name}'"
            ))
            .unwrap();
        self.reload("synchronous_standby_names", name);
    }

    /// As somebody with a database shell.
    pub(crate) fn client(&self) -> Client {
        let mut client = connect(&self.url);
        client.batch_execute("SET search_path = glovebox").unwrap();
        client
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        if let Ok(mut client) = Client::connect(&self.admin, NoTls) {
            let _ = client.batch_execute(&drop);
        }
    }
}

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap()
}
