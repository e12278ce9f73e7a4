//! Shadowing that is correlated in space: a Gaussian field over the positions of both ends of a path.
//!
//! The correlation of one end's movement by d is exp(-d / D) with the other end at rest (Gudmundson, Electronics Letters 27(23), 1991,
//! whose D is here `correlation_m`), and with both ends in motion the product of both (Wang, Tameh and Nix, IEEE Transactions on
//! Vehicular Technology 57(1), 2008). The field is a sum of sinusoids (Cai and Giannakis, IEEE Transactions on Vehicular Technology
//! 52(6), 2003). Their wave vectors are drawn from the spectrum of that correlation: exp(-d / D) is the characteristic function of
//! the multivariate Cauchy distribution of scale 1 / D. Its lengths r / D have the distribution (2 / pi) (atan r - r / (1 + r^2)),
//! from which each sinusoid draws within a part of its own; the directions are uniform.
//!
//! It is a pure function of seed and positions, the same in both directions. A value is within [`HIGHEST`] standard deviations.

use manet_engine::random::Purpose;
use manet_engine::Stream;
use std::f64::consts::TAU;

/// x, y, z in m.
type Position = [f64; 3];

/// Sinusoids of the field. More take longer and are nearer to the normal distribution and its correlation: of 64 the correlation of
/// one seed is within about 1 / sqrt(2 x 64) = 0.09 of the formula.
const WAVES: usize = 64;
/// Bound of a value, standard deviations; 6 of 100,000 draws of a normal distribution are beyond.
pub const HIGHEST: f64 = 4.0;

#[derive(Clone, Debug)]
struct Wave {
    /// Wave vectors at the two ends, rad/m.
    ends: [Position; 2],
    phase: f64,
}

/// The field of one seed.
#[derive(Clone, Debug)]
pub struct Field {
    correlation_m: f64,
    waves: Vec<Wave>,
}

impl Field {
    /// `correlation_m`: the distance over which the correlation falls to 1/e, m, above 0.
    pub fn new(seed: u64, correlation_m: f64) -> Self {
        let mut draws = Stream::new(seed, 0, Purpose::ShadowField);
        // the parts of the lengths at the second end, in an order of their own
        let mut others: Vec<usize> = (0..WAVES).collect();
        for n in (1..WAVES).rev() {
            others.swap(n, draws.below(n as u64 + 1) as usize);
        }
        let mut vector = |part: usize| {
            let length = cauchy_length((part as f64 + draws.unit()) / WAVES as f64) / correlation_m;
            let direction: Position = std::array::from_fn(|_| draws.normal());
            let norm = dot(&direction, &direction).sqrt();
            direction.map(|axis| axis * length / norm)
        };
        let ends: Vec<[Position; 2]> = others.into_iter().enumerate().map(|(n, m)| [vector(n), vector(m)]).collect();
        let waves = ends.into_iter().map(|ends| Wave { ends, phase: TAU * draws.unit() }).collect();
        Self { correlation_m, waves }
    }

    /// The value of the path between `a` and `b`: mean 0, standard deviation 1.
    pub fn at(&self, a: Position, b: Position) -> f64 {
        // the sum of both directions; cos x + cos y = 2 cos((x + y) / 2) cos((x - y) / 2)
        let (sum, difference): (Position, Position) =
            (std::array::from_fn(|i| (a[i] + b[i]) / 2.0), std::array::from_fn(|i| (a[i] - b[i]) / 2.0));
        let both = |Wave { ends: [k, g], phase }: &Wave| {
            let (mean, half) = (dot(k, &sum) + dot(g, &sum) + phase, dot(k, &difference) - dot(g, &difference));
            2.0 * mean.cos() * half.cos()
        };
        let sum: f64 = self.waves.iter().map(both).sum();
        // near each other both directions are alike: their correlation is that of both ends moved by the distance between them
        let alike = (-4.0 * dot(&difference, &difference).sqrt() / self.correlation_m).exp();
        (sum / (WAVES as f64 * (1.0 + alike)).sqrt()).clamp(-HIGHEST, HIGHEST)
    }
}

/// The length that a draw of the trivariate Cauchy distribution of scale 1 is below with probability `share`, by bisection.
fn cauchy_length(share: f64) -> f64 {
    let below = |r: f64| std::f64::consts::FRAC_2_PI * (r.atan() - r / (1.0 + r * r));
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if below(middle) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

fn dot(a: &Position, b: &Position) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[cfg(test)]
mod tests {
    use super::*;

    const D_M: f64 = 20.0;
    const FIELDS: u64 = 4000;

    fn fields() -> Vec<Field> {
        (0..FIELDS).map(|seed| Field::new(seed, D_M)).collect()
    }

    /// Mean of the products of the values of two paths.
    fn correlation(fields: &[Field], one: [Position; 2], other: [Position; 2]) -> f64 {
        let product = |field: &Field| field.at(one[0], one[1]) * field.at(other[0], other[1]);
        fields.iter().map(product).sum::<f64>() / FIELDS as f64
    }

    #[test]
    fn the_correlation_falls_by_1_e_over_the_distance_of_either_end() {
        let (fields, a, b) = (fields(), [0.0, 0.0, 0.0], [300.0, 0.0, 0.0]);
        // a product of two normal values has a deviation of at most sqrt(2): of 4000 the mean is known to 4 x 0.022 = 0.09
        for moved_m in [0.0, 5.0, 10.0, 20.0, 40.0, 80.0] {
            let expected = (-moved_m / D_M).exp();
            let by_one = correlation(&fields, [a, b], [[0.0, moved_m, 0.0], b]);
            assert!((by_one - expected).abs() < 0.09, "{moved_m} m: {by_one}, not {expected}");
            let by_both = correlation(&fields, [a, b], [[-moved_m, 0.0, 0.0], [300.0, moved_m, 0.0]]);
            assert!((by_both - expected * expected).abs() < 0.09, "{moved_m} m at both: {by_both}");
        }
    }

    #[test]
    fn it_is_standard_normal_also_on_short_paths_and_the_same_in_both_directions() {
        let fields = fields();
        for far_m in [0.0, 3.0, 20.0, 500.0] {
            let value = |field: &Field| field.at([1.0; 3], [1.0 + far_m, 1.0, 1.0]);
            let values: Vec<f64> = fields.iter().map(value).collect();
            let (mean, variance) =
                (values.iter().sum::<f64>() / FIELDS as f64, values.iter().map(|v| v * v).sum::<f64>() / FIELDS as f64);
            // four standard errors: 4 / sqrt(4000) and 4 sqrt(2 / 4000)
            assert!(mean.abs() < 0.064 && (variance - 1.0).abs() < 0.09, "{far_m} m: {mean} {variance}");
            let below = values.iter().filter(|v| **v < -1.0).count() as f64 / FIELDS as f64;
            assert!((below - 0.1587).abs() < 0.024, "{far_m} m: phi(-1) = 0.1587, not {below}");
        }
        let field = Field::new(7, D_M);
        assert_eq!(field.at([3.0, 4.0, 0.0], [50.0, 9.0, 2.0]), field.at([50.0, 9.0, 2.0], [3.0, 4.0, 0.0]));
    }

    #[test]
    fn one_seed_is_one_field_and_another_seed_another() {
        let at = |seed| Field::new(seed, D_M).at([0.0; 3], [100.0, 0.0, 0.0]);
        assert_eq!(at(1), at(1));
        assert_ne!(at(1), at(2));
    }

    #[test]
    fn along_a_path_of_one_seed_the_correlation_is_near_the_formula() {
        let field = Field::new(11, D_M);
        let at = |x: f64| field.at([x, 0.0, 0.0], [-1e5, 0.0, 0.0]);
        let steps = 40_000;
        let mean =
            |lag_m: f64| (0..steps).map(f64::from).map(|x| at(x) * at(x + lag_m)).sum::<f64>() / f64::from(steps);
        for lag_m in [0.0, 10.0, 20.0, 60.0] {
            let (found, expected) = (mean(lag_m), (-lag_m / D_M).exp());
            assert!((found - expected).abs() < 0.25, "{lag_m} m: {found}, not {expected}");
        }
    }
}
