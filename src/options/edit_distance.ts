/**
 * How many letters to insert, delete, replace or swap with the next one to get from one text to the other. A letter in
 * the wrong case counts a quarter.
 *
 * @param a The one text.
 * @param b The other.
 * @returns The distance, 0 for the same text.
 */
export function editDistance(a: string, b: string): number {
  let two: number[] = [];
  let one = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const x = a[i - 1]!, y = b[j - 1]!;
      const change = x === y ? 0 : x.toLowerCase() === y.toLowerCase() ? 0.25 : 1;
      let d = Math.min(one[j]! + 1, row[j - 1]! + 1, one[j - 1]! + change);
      if (i > 1 && j > 1 && x === b[j - 2] && a[i - 2] === y) d = Math.min(d, two[j - 2]! + 1);
      row.push(d);
    }
    two = one;
    one = row;
  }
  return one[b.length]!;
}
