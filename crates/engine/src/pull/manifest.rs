//! The documents of a registry, read only as far as it takes to know what to fetch. What an image
//! really is decides the importer, which reads them again with distrust.

use glovebox_model::{Code, Error, Result, Stage};
use glovebox_workspace::image::ImageDigest;
use serde::Deserialize;

pub(super) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

/// An index, a manifest or a configuration.
pub(super) const DOCUMENT_MOST: usize = 4 << 20;
const LAYERS_MOST: usize = 1000;
/// Of all layers as they come over the wire.
const BYTES_MOST: u64 = 20 << 30;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: Option<String>,
    pub(super) digest: ImageDigest,
    pub(super) size: u64,
    platform: Option<Platform>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
}

#[derive(Debug)]
pub(super) enum Content {
    /// The one for this machine.
    Index(Descriptor),
    /// The configuration first, then the layers; each once.
    Manifest(Vec<Descriptor>),
}

impl Content {
    pub(super) fn read(text: &[u8]) -> Result<Self> {
        let document: Document = serde_json::from_slice(text)
            .map_err(|error| unfit("its manifest cannot be understood").caused_by(error))?;
        match (document.manifests, document.config, document.layers) {
            (Some(all), None, None) => ours(all).map(Self::Index),
            (None, Some(config), Some(layers)) => parts(config, layers).map(Self::Manifest),
            _ => Err(unfit("its manifest is neither an index nor a manifest")),
        }
    }
}

/// This machine's name in images.
pub(super) fn machine() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn ours(all: Vec<Descriptor>) -> Result<Descriptor> {
    let fits = |it: &Descriptor| {
        it.platform
            .as_ref()
            .is_some_and(|it| it.os == "linux" && it.architecture == machine())
    };
    let alone = all.len() == 1 && all[0].platform.is_none();
    let mut platforms: Vec<String> = all
        .iter()
        .filter_map(|it| it.platform.as_ref())
        .map(|it| {
            format!(
                "`{}/{}`",
                it.os.escape_debug(),
                it.architecture.escape_debug()
            )
        })
        .collect();
    platforms.sort();
    platforms.dedup();
    platforms.truncate(20);
    all.into_iter().find(|it| alone || fits(it)).ok_or_else(|| {
        unfit(&format!("there is none for `linux/{}`", machine()))
            .hint(format!("there are {}", platforms.join(", ")))
    })
}

fn parts(config: Descriptor, layers: Vec<Descriptor>) -> Result<Vec<Descriptor>> {
    if config.size > DOCUMENT_MOST as u64 {
        return Err(unfit("its configuration is larger than 4 MiB"));
    }
    if layers.len() > LAYERS_MOST {
        return Err(unfit("it has more than 1000 layers"));
    }
    let mut parts: Vec<Descriptor> = Vec::new();
    let mut total = 0_u64;
    for part in std::iter::once(config).chain(layers) {
        if parts.iter().any(|it| it.digest == part.digest) {
            continue;
        }
        total = total.saturating_add(part.size);
        if total > BYTES_MOST {
            return Err(unfit("its layers have more than 20 GiB"));
        }
        parts.push(part);
    }
    Ok(parts)
}

pub(super) fn unfit(why: &str) -> Error {
    Error::new(
        Code::InvalidArgument,
        Stage::Open,
        format!("the image cannot be pulled: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(byte: u8) -> String {
        format!("sha256:{}", format!("{byte:02x}").repeat(32))
    }

    #[test]
    fn of_many_machines_ours_is_taken() {
        let index = serde_json::json!({"manifests": [
            {"digest": digest(1), "size": 1, "platform": {"os": "linux", "architecture": "s390x"}},
            {"digest": digest(2), "size": 1, "platform": {"os": "linux", "architecture": machine()}},
        ]});
        match Content::read(index.to_string().as_bytes()).unwrap() {
            Content::Index(it) => assert_eq!(it.digest.to_string(), digest(2)),
            Content::Manifest(_) => panic!("it is an index"),
        }
        let other = serde_json::json!({"manifests": [
            {"digest": digest(1), "size": 1, "platform": {"os": "linux", "architecture": "s390x"}},
        ]});
        let error = Content::read(other.to_string().as_bytes()).unwrap_err();
        assert!(error.hints[0].contains("linux/s390x"), "{error}");
    }

    #[test]
    fn a_layer_that_is_named_twice_is_fetched_once() {
        let part = |byte: u8, size: u64| serde_json::json!({"digest": digest(byte), "size": size});
        let manifest = serde_json::json!({
            "config": part(1, 10), "layers": [part(2, 5), part(3, 5), part(2, 5)],
        });
        match Content::read(manifest.to_string().as_bytes()).unwrap() {
            Content::Manifest(parts) => assert_eq!(parts.len(), 3),
            Content::Index(_) => panic!("it is a manifest"),
        }
        for bad in [
            serde_json::json!({"config": part(1, 5 << 20), "layers": []}),
            serde_json::json!({"config": part(1, 1), "layers": [part(2, u64::MAX)]}),
            serde_json::json!({"config": part(1, 1), "layers": [], "manifests": []}),
            serde_json::json!({}),
        ] {
            assert!(Content::read(bad.to_string().as_bytes()).is_err(), "{bad}");
        }
    }
}
