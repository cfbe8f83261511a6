//! A PostgreSQL database of a test's own, in a cluster that is shared or started for it.

use std::path::Path;
use std::process::Command;

/// Gone when dropped.
#[derive(Debug)]
pub struct Database {
    url: String,
    admin: String,
    name: String,
    /// Set when the cluster is ours alone.
    cluster: Option<tempfile::TempDir>,
}

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/postgres");

impl Database {
    /// `None` when there is no PostgreSQL here, which is said; in CI that is a failure.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn new() -> Option<Self> {
        let (admin, cluster) = match std::env::var("GLOVEBOX_TEST_POSTGRES") {
            Ok(url) => (url, None),
            Err(_) => {
                if !is_installed() {
                    let said = "no PostgreSQL here (`apt-get install postgresql`)";
                    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
                    assert!(!in_ci, "{said}");
                    eprintln!("SKIPPED: {said}");
                    return None;
                }
                let directory = tempfile::tempdir().expect("a directory");
                (start(directory.path()), Some(directory))
            }
        };
        let name = format!("glovebox_{}_{:x}", std::process::id(), unique());
        psql(&admin, &format!("CREATE DATABASE {name}"));
        Some(Self {
            url: with_database(&admin, &name),
            admin,
            name,
            cluster,
        })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs a statement as the cluster's administrator, in this database.
    pub fn psql(&self, statement: &str) -> String {
        psql(&self.url, statement)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        psql(
            &self.admin,
            &format!("DROP DATABASE {} WITH (FORCE)", self.name),
        );
        if let Some(directory) = &self.cluster {
            let _ = Command::new(SCRIPT)
                .arg("stop")
                .arg(directory.path())
                .status();
        }
    }
}

fn is_installed() -> bool {
    Path::new("/usr/lib/postgresql").is_dir()
}

fn start(directory: &Path) -> String {
    let output = Command::new(SCRIPT)
        .arg("start")
        .arg(directory)
        .output()
        .expect("start PostgreSQL");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("an address");
    text.trim().to_owned()
}

fn psql(url: &str, statement: &str) -> String {
    let output = Command::new("psql")
        .args([url, "-v", "ON_ERROR_STOP=1", "-Atqc", statement])
        .output()
        .expect("psql");
    assert!(output.status.success(), "{statement}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The same address with another database in it.
fn with_database(url: &str, name: &str) -> String {
    let (before, query) = url
        .split_once('?')
        .map_or((url, ""), |(before, query)| (before, query));
    let (server, _) = before.rsplit_once('/').expect("an address with a database");
    match query {
        "" => format!("{server}/{name}"),
        query => format!("{server}/{name}?{query}"),
    }
}

fn unique() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |time| time.as_nanos())
}
