//! Walls: line segments on the ground plan, each with a loss for every path that crosses it (the wall losses of the multi-wall model,
//! COST 231 final report, section 4.7). A wall is as high as any station; what it reflects or bends is not modelled.

/// A wall.
#[derive(Clone, Debug, PartialEq)]
pub struct Wall {
    /// One end, x and y, m.
    pub from: [f64; 2],
    /// The other end.
    pub to: [f64; 2],
    /// Loss of a path that crosses the wall, dB.
    pub loss_db: f64,
}

impl Wall {
    /// Whether the path from `a` to `b` crosses or touches the wall. A path along the wall does not.
    pub fn crosses(&self, a: [f64; 3], b: [f64; 3]) -> bool {
        let (a, b) = ([a[0], a[1]], [b[0], b[1]]);
        let sides =
            [side(a, b, self.from), side(a, b, self.to), side(self.from, self.to, a), side(self.from, self.to, b)];
        sides[0] * sides[1] <= 0.0 && sides[2] * sides[3] <= 0.0 && sides != [0.0; 4]
    }
}

/// The factor on the power of a path from `a` to `b`.
pub fn gain(walls: &[Wall], a: [f64; 3], b: [f64; 3]) -> f64 {
    let loss_db: f64 = walls.iter().filter(|wall| wall.crosses(a, b)).map(|wall| wall.loss_db).sum();
    10f64.powf(-loss_db / 10.0)
}

/// 1: `p` is left of the line from `a` to `b`; -1: right of it; 0: on it.
fn side(a: [f64; 2], b: [f64; 2], p: [f64; 2]) -> f64 {
    let area = (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]);
    if area == 0.0 {
        0.0
    } else {
        area.signum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wall(from: [f64; 2], to: [f64; 2], loss_db: f64) -> Wall {
        Wall { from, to, loss_db }
    }

    #[test]
    fn a_path_loses_at_each_wall_that_it_crosses() {
        let walls = [wall([5.0, -1.0], [5.0, 1.0], 6.0), wall([8.0, -9.0], [8.0, 9.0], 10.0)];
        let loss_db = |b: [f64; 3]| -10.0 * gain(&walls, [0.0; 3], b).log10();
        assert_eq!(gain(&walls, [0.0; 3], [4.0, 0.0, 0.0]), 1.0);
        assert!((loss_db([6.0, 0.0, 0.0]) - 6.0).abs() < 1e-9);
        assert!((loss_db([10.0, 0.0, 30.0]) - 16.0).abs() < 1e-9, "as high as any station");
        assert!((loss_db([10.0, 5.0, 0.0]) - 10.0).abs() < 1e-9, "past the end of the first: y = 2.5 at x = 5");
    }

    #[test]
    fn touching_counts_and_a_path_along_the_wall_does_not() {
        let one = wall([5.0, 0.0], [5.0, 4.0], 6.0);
        assert!(one.crosses([0.0; 3], [9.0, 0.0, 0.0]), "over its end");
        assert!(one.crosses([5.0, 2.0, 0.0], [9.0, 2.0, 0.0]), "from a station on it");
        assert!(!one.crosses([5.0, -1.0, 0.0], [5.0, 9.0, 0.0]));
        assert!(!one.crosses([5.0, 2.0, 0.0], [5.0, 2.0, 0.0]), "no way at all");
    }

    proptest! {
        /// The crossing by the solution of the two lines' equations, away from touching ones.
        #[test]
        fn a_crossing_is_that_of_the_equations(c in prop::array::uniform8(-100.0..100.0f64)) {
            let [ax, ay, bx, by, ux, uy, vx, vy] = c;
            let det = (bx - ax) * (vy - uy) - (by - ay) * (vx - ux);
            prop_assume!(det.abs() > 1e-3);
            let along = ((ux - ax) * (vy - uy) - (uy - ay) * (vx - ux)) / det;
            let up = ((ux - ax) * (by - ay) - (uy - ay) * (bx - ax)) / det;
            let inside = |share: f64| (0.0..=1.0).contains(&share);
            prop_assume!([along, up].iter().all(|share| share.abs() > 1e-6 && (share - 1.0).abs() > 1e-6));
            let one = wall([ux, uy], [vx, vy], 1.0);
            let (a, b) = ([ax, ay, 0.0], [bx, by, 0.0]);
            prop_assert_eq!(one.crosses(a, b), inside(along) && inside(up));
            prop_assert_eq!(one.crosses(a, b), one.crosses(b, a));
        }
    }
}
