//! Reads the files of a run: `medium.json` (formats/medium.md), and the radio profile and the trace that it names.

use manet_medium::config::{Config, ConfigError, Loaded, MAX_TIME_S};
use manet_medium::phy::measured::{LinksError, Measured};
use manet_medium::phy::propagation::Model;
use manet_medium::phy::radio::{Radio, RadioError};
use manet_medium::run_verdict::Thresholds;
use manet_medium::trace::{self, Trace, TraceError, Trajectory};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A checked configuration with the contents of its files.
#[derive(Debug)]
pub struct Setup {
    /// Configuration and radio.
    pub loaded: Loaded,
    /// Thresholds of the verdict.
    pub thresholds: Thresholds,
    /// Movement of each station.
    pub trajectories: Vec<Trajectory>,
    /// The folder of `medium.json`; paths in it are relative to this folder.
    folder: PathBuf,
}

impl Setup {
    /// Reads `medium.json` at `path` and the files that it names.
    ///
    /// # Errors
    /// A file that cannot be read, or the first mistake in one.
    pub fn read(path: &Path) -> Result<Self, SetupError> {
        let in_file = |mistake| SetupError::Mistake { file: path.to_owned(), mistake };
        let folder = path.parent().unwrap_or(Path::new(".")).to_path_buf();
        let text =
            std::fs::read_to_string(path).map_err(|error| SetupError::Unreadable { file: path.to_owned(), error })?;
        let config = Config::parse(&text).map_err(|e| in_file(Mistake::Config(e)))?;
        let radio = read_radio(folder.join(&config.radio), &config).map_err(in_file)?;
        let mut loaded = Loaded::new(config, radio).map_err(|e| in_file(Mistake::Config(e)))?;
        if let Model::Trace { file } = &loaded.config.propagation {
            loaded.measured = Some(read_links(folder.join(file), &loaded)?.into());
        }
        let thresholds = loaded.config.verdict.unwrap_or_default();
        let trace = loaded.config.trace.as_ref().map(|path| read_trace(folder.join(path), &loaded)).transpose()?;
        let trajectories = trace::of_stations(&loaded, trace).map_err(SetupError::Trace)?;
        Ok(Self { loaded, thresholds, trajectories, folder })
    }

    /// A path of the configuration, relative to the working directory of the process.
    pub fn in_folder(&self, path: &Option<PathBuf>) -> Option<PathBuf> {
        path.as_ref().map(|path| self.folder.join(path))
    }
}

fn read_radio(profile: PathBuf, config: &Config) -> Result<Radio, Mistake> {
    match std::fs::read_to_string(&profile) {
        Ok(text) => Radio::parse(&text, &config.radio_overrides).map_err(|error| {
            if Radio::parse(&text, &Default::default()).is_ok() {
                Mistake::Overrides { error }
            } else {
                Mistake::Radio { profile, error }
            }
        }),
        Err(error) => Err(Mistake::RadioUnreadable { profile, error }),
    }
}

fn read_trace(path: PathBuf, loaded: &Loaded) -> Result<Trace, SetupError> {
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            Trace::parse(&text, &path.display().to_string(), &loaded.station_names()).map_err(SetupError::Trace)
        }
        Err(error) => Err(SetupError::TraceUnreadable { trace: path, error }),
    }
}

fn read_links(path: PathBuf, loaded: &Loaded) -> Result<Measured, SetupError> {
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let (name, stations) = (path.display().to_string(), loaded.station_names());
            Measured::parse(&text, &name, &stations, &loaded.radio, MAX_TIME_S).map_err(SetupError::Links)
        }
        Err(error) => Err(SetupError::LinksUnreadable { links: path, error }),
    }
}

/// The reason why a run cannot start: one line that names the file, and the key or the remedy.
#[derive(Debug)]
pub enum SetupError {
    /// `medium.json` cannot be read.
    Unreadable {
        /// Its path.
        file: PathBuf,
        /// The error of the read.
        error: io::Error,
    },
    /// `medium.json` has a mistake.
    Mistake {
        /// Its path.
        file: PathBuf,
        /// The mistake.
        mistake: Mistake,
    },
    /// The trace cannot be read.
    TraceUnreadable {
        /// Its path.
        trace: PathBuf,
        /// The error of the read.
        error: io::Error,
    },
    /// The trace has a mistake.
    Trace(TraceError),
    /// The measured links cannot be read.
    LinksUnreadable {
        /// Their path.
        links: PathBuf,
        /// The error of the read.
        error: io::Error,
    },
    /// The measured links have a mistake.
    Links(LinksError),
}

/// A mistake in `medium.json` or in the profile that it names.
#[derive(Debug)]
pub enum Mistake {
    /// In a key of `medium.json`.
    Config(ConfigError),
    /// The profile cannot be read.
    RadioUnreadable {
        /// Its path.
        profile: PathBuf,
        /// The error of the read.
        error: io::Error,
    },
    /// The profile alone has none.
    Overrides {
        /// The mistake.
        error: RadioError,
    },
    /// The profile has a mistake.
    Radio {
        /// Its path.
        profile: PathBuf,
        /// The mistake.
        error: RadioError,
    },
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { file, error } => {
                write!(f, "{}: cannot be read: {error}; give the path of a medium.json", file.display())
            }
            Self::Mistake { file, mistake } => write!(f, "{}: {mistake}", file.display()),
            Self::TraceUnreadable { trace, error } => {
                write!(f, "{}: cannot be read: {error}; key \"trace\" names it", trace.display())
            }
            Self::Trace(error) => error.fmt(f),
            Self::LinksUnreadable { links, error } => {
                write!(f, "{}: cannot be read: {error}; key \"propagation.file\" names it", links.display())
            }
            Self::Links(error) => error.fmt(f),
        }
    }
}
impl std::error::Error for SetupError {}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::RadioUnreadable { profile, error } => {
                write!(f, "{}: cannot be read: {error}; the profiles are in medium/radios", profile.display())
            }
            Self::Overrides { error } => {
                let text = error.to_string();
                match text.strip_prefix("key \"") {
                    Some(key) => write!(f, "key \"radio_overrides.{key}"),
                    None => write!(f, "key \"radio_overrides\": {text}"),
                }
            }
            Self::Radio { profile, error } => write!(f, "{}: {error}", profile.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../formats/examples");

    /// The refusal of a copy of an example, in a folder of its own, after `change`.
    fn refusal(test: &str, change: impl FnOnce(&mut serde_json::Value)) -> String {
        let folder = std::env::temp_dir().join(format!("manet-setup-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut json: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(format!("{EXAMPLES}/sim.json")).unwrap()).unwrap();
        json["radio"] = concat!(env!("CARGO_MANIFEST_DIR"), "/../radios/ns2-dsss-2m.toml").into();
        change(&mut json);
        std::fs::write(folder.join("medium.json"), json.to_string()).unwrap();
        let refusal = Setup::read(&folder.join("medium.json")).unwrap_err().to_string();
        std::fs::remove_dir_all(&folder).unwrap();
        refusal.replace(&folder.display().to_string(), "DIR")
    }

    #[test]
    fn each_refusal_names_the_file_that_is_wrong() {
        let missing = Setup::read(Path::new("/proc/nonexistent/medium.json")).unwrap_err().to_string();
        assert_eq!(
            missing,
            "/proc/nonexistent/medium.json: cannot be read: No such file or directory (os error 2); give the path of a medium.json"
        );
        let refused = refusal("queue", |j| j["queue"] = serde_json::json!({"packets": 0}));
        assert_eq!(refused, "DIR/medium.json: key \"queue.packets\": 0 is not between 1 and 100000 packets");
        let refused = refusal("verdict", |j| j["verdict"] = serde_json::json!({"late_ms": 1}));
        assert_eq!(refused, "DIR/medium.json: key \"verdict.late_ms\": unknown key; did you mean late_us?");
        let refused = refusal("category", |j| {
            j["radio_overrides"] = serde_json::json!({"access_categories": {"voice": 3}});
        });
        assert_eq!(
            refused,
            "DIR/medium.json: key \"radio_overrides.access_categories.voice\": 3 is of the wrong type; give a table with aifsn, \
             cw_min, cw_max, txop_us"
        );
    }

    #[test]
    fn a_refusal_of_a_file_that_the_configuration_names_names_that_file() {
        let refused = refusal("profile", |j| j["radio"] = "absent.toml".into());
        assert_eq!(
            refused,
            "DIR/medium.json: DIR/absent.toml: cannot be read: No such file or directory (os error 2); the profiles are in medium/radios"
        );
        let refused = refusal("override", |j| j["radio_overrides"] = serde_json::json!({"cw_min": 30}));
        assert_eq!(
            refused, "DIR/medium.json: key \"radio_overrides.cw_min\": 30 is not 2^k - 1; give 15 or 31",
            "the profile alone is right"
        );
        let refused =
            refusal("links", |j| j["propagation"] = serde_json::json!({"model": "trace", "file": "absent.csv"}));
        assert_eq!(
            refused,
            "DIR/absent.csv: cannot be read: No such file or directory (os error 2); key \"propagation.file\" names it"
        );
        let refused = refusal("trace", |j| j["trace"] = "absent.csv".into());
        assert_eq!(
            refused,
            "DIR/absent.csv: cannot be read: No such file or directory (os error 2); key \"trace\" names it"
        );
    }
}
