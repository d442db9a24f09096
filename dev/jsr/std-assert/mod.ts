/**
 * Stand-in for `@std/assert`: the assertions this project uses, with the same names and signatures.
 *
 * @module
 */

/** A constructor, abstract ones included. */
// deno-lint-ignore no-explicit-any
export type AnyConstructor = abstract new (...args: any[]) => any;

/** The type that a constructor makes. */
export type GetConstructorType<T extends AnyConstructor> = InstanceType<T>;

/** Values that array-like assertions take. */
export type ArrayLikeArg<T> = ArrayLike<T> & object;

/** A falsy value. */
export type Falsy = false | 0 | 0n | "" | null | undefined;

/** What every failed assertion throws. */
export class AssertionError extends Error {
  /** Makes the error with its message. */
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "AssertionError";
  }
}

function show(value: unknown): string {
  return Deno.inspect(value, {
    depth: 8,
    sorted: true,
    strAbbreviateSize: 2000,
    iterableLimit: 50,
  });
}

function raise(what: string, msg?: string): never {
  throw new AssertionError(msg === undefined ? what : `${what}: ${msg}`);
}

function errorMatches(
  error: unknown,
  ErrorClass: AnyConstructor | undefined,
  msgIncludes: string | undefined,
  msg: string | undefined,
): void {
  if (ErrorClass !== undefined) {
    if (!(error instanceof Error)) raise(`A non-Error object was thrown: ${show(error)}`, msg);
    if (!(error instanceof ErrorClass)) {
      raise(
        `Expected error to be instance of "${ErrorClass.name}", but was "${error.constructor.name}" (${error.message})`,
        msg,
      );
    }
  }
  if (
    msgIncludes !== undefined && !(error instanceof Error && error.message.includes(msgIncludes))
  ) {
    const had = error instanceof Error ? show(error.message) : show(error);
    raise(`Expected error message to include ${show(msgIncludes)}, but got ${had}`, msg);
  }
}

/** Fails unless `expr` is truthy. */
export function assert(expr: unknown, msg = ""): asserts expr {
  if (!expr) throw new AssertionError(msg);
}

/** Fails unless `expr` is falsy. */
export function assertFalse(expr: unknown, msg = ""): asserts expr is Falsy {
  if (expr) throw new AssertionError(msg);
}

/** Whether two values are deeply equal: same structure, prototypes and own enumerable keys. */
export function equal(a: unknown, b: unknown): boolean {
  const seen = new Map<object, object>();
  const same = (a: unknown, b: unknown): boolean => {
    if (Object.is(a, b)) return true;
    // 0 and -0 differ only for assertStrictEquals.
    if (typeof a === "number" && typeof b === "number") return a === b;
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
    if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) {
      // A record without a prototype equals a plain object.
      const plain = (x: object) => [null, Object.prototype].includes(Object.getPrototypeOf(x));
      if (!(plain(a) && plain(b))) return false;
    }
    if (seen.get(a) === b) return true;
    seen.set(a, b);
    if (a instanceof Date && b instanceof Date) return Object.is(a.getTime(), b.getTime());
    if (a instanceof RegExp && b instanceof RegExp) return String(a) === String(b);
    if (a instanceof URL && b instanceof URL) return a.href === b.href;
    if (a instanceof WeakMap || a instanceof WeakSet || a instanceof WeakRef) return false;
    if (a instanceof Error && b instanceof Error) {
      if (a.message !== b.message || a.name !== b.name) return false;
    }
    if (a instanceof ArrayBuffer && b instanceof ArrayBuffer) {
      return same(new Uint8Array(a), new Uint8Array(b));
    }
    if (ArrayBuffer.isView(a) && ArrayBuffer.isView(b)) {
      if (a.byteLength !== b.byteLength) return false;
      if (a instanceof Uint8Array && b instanceof Uint8Array) {
        return a.every((x, i) => x === b[i]);
      }
    }
    if (a instanceof Set && b instanceof Set) {
      if (a.size !== b.size) return false;
      const rest = [...b];
      for (const x of a) {
        const i = rest.findIndex((y) => same(x, y));
        if (i < 0) return false;
        rest.splice(i, 1);
      }
      return true;
    }
    if (a instanceof Map && b instanceof Map) {
      if (a.size !== b.size) return false;
      const rest = [...b];
      for (const x of a) {
        const i = rest.findIndex((y) => same(x, y));
        if (i < 0) return false;
        rest.splice(i, 1);
      }
      return true;
    }
    if (Array.isArray(a) && Array.isArray(b) && a.length !== b.length) return false;
    const ka = Reflect.ownKeys(a).filter((k) => Object.prototype.propertyIsEnumerable.call(a, k));
    const kb = Reflect.ownKeys(b).filter((k) => Object.prototype.propertyIsEnumerable.call(b, k));
    if (ka.length !== kb.length) return false;
    return ka.every((k) => Object.hasOwn(b, k) && same(Reflect.get(a, k), Reflect.get(b, k)));
  };
  return same(a, b);
}

/** Fails unless the two values are deeply equal. */
export function assertEquals<T>(actual: T, expected: T, msg?: string): void {
  if (!equal(actual, expected)) {
    raise(`Values are not equal\n  actual:   ${show(actual)}\n  expected: ${show(expected)}`, msg);
  }
}

/** Fails if the two values are deeply equal. */
export function assertNotEquals<T>(actual: T, expected: T, msg?: string): void {
  if (equal(actual, expected)) {
    raise(`Expected actual: ${show(actual)} not to be: ${show(expected)}`, msg);
  }
}

/** Fails unless `Object.is` holds. */
export function assertStrictEquals<T>(
  actual: unknown,
  expected: T,
  msg?: string,
): asserts actual is T {
  if (!Object.is(actual, expected)) {
    raise(
      `Values are not strictly equal\n  actual:   ${show(actual)}\n  expected: ${show(expected)}`,
      msg,
    );
  }
}

/** Fails if `Object.is` holds. */
export function assertNotStrictEquals<T>(actual: T, expected: T, msg?: string): void {
  if (Object.is(actual, expected)) {
    raise(`Expected "actual" to not be strictly equal to: ${show(actual)}`, msg);
  }
}

/** Fails unless the numbers differ by at most the tolerance, by default a ten-millionth of `expected`. */
export function assertAlmostEquals(
  actual: number,
  expected: number,
  tolerance?: number,
  msg?: string,
): void {
  if (Object.is(actual, expected)) return;
  const limit = tolerance ?? (Number.isFinite(expected) ? Math.abs(expected * 1e-7) : 1e-7);
  const delta = Math.abs(expected - actual);
  if (delta <= limit) return;
  raise(
    `Expected actual: "${actual}" to be close to "${expected}": delta "${delta}" is greater than "${limit}"`,
    msg,
  );
}

/** Fails if `actual` is null or undefined. */
export function assertExists<T>(actual: T, msg?: string): asserts actual is NonNullable<T> {
  if (actual === undefined || actual === null) {
    raise(`Expected actual: "${actual}" to not be null or undefined`, msg);
  }
}

/** Fails unless `actual` contains `expected`. */
export function assertStringIncludes(actual: string, expected: string, msg?: string): void {
  if (!actual.includes(expected)) {
    raise(`Expected actual: ${show(actual)} to contain: ${show(expected)}`, msg);
  }
}

/** Fails unless every item of `expected` is deeply equal to some item of `actual`. */
export function assertArrayIncludes<T>(
  actual: ArrayLikeArg<T>,
  expected: ArrayLikeArg<T>,
  msg?: string,
): void {
  const missing = Array.from(expected).filter((x) => !Array.from(actual).some((y) => equal(x, y)));
  if (missing.length > 0) {
    raise(
      `Expected actual: ${show(actual)} to include: ${show(expected)}, missing: ${show(missing)}`,
      msg,
    );
  }
}

/** Fails unless `actual` matches the expression. */
export function assertMatch(actual: string, expected: RegExp, msg?: string): void {
  if (!new RegExp(expected).test(actual)) {
    raise(`Expected actual: ${show(actual)} to match: ${expected}`, msg);
  }
}

/** Fails if `actual` matches the expression. */
export function assertNotMatch(actual: string, expected: RegExp, msg?: string): void {
  if (new RegExp(expected).test(actual)) {
    raise(`Expected actual: ${show(actual)} to not match: ${expected}`, msg);
  }
}

/** Fails unless every property of `expected` is found, deeply, in `actual`. */
export function assertObjectMatch(
  // deno-lint-ignore no-explicit-any
  actual: Record<PropertyKey, any>,
  expected: Record<PropertyKey, unknown>,
  msg?: string,
): void {
  const within = (a: unknown, e: unknown): boolean => {
    if (typeof e !== "object" || e === null || typeof a !== "object" || a === null) {
      return equal(a, e);
    }
    if (e instanceof Map || e instanceof Set || e instanceof Date || e instanceof RegExp) {
      return equal(a, e);
    }
    if (Array.isArray(e) !== Array.isArray(a)) return false;
    return Reflect.ownKeys(e).every((k) =>
      Reflect.has(a, k) && within(Reflect.get(a, k), Reflect.get(e, k))
    );
  };
  if (!within(actual, expected)) {
    raise(`Object does not match\n  actual:   ${show(actual)}\n  expected: ${show(expected)}`, msg);
  }
}

/** Fails unless `actual` is an instance of the class. */
export function assertInstanceOf<T extends AnyConstructor>(
  actual: unknown,
  expectedType: T,
  msg?: string,
): asserts actual is GetConstructorType<T> {
  if (!(actual instanceof expectedType)) {
    raise(
      `Expected object to be an instance of "${expectedType.name}" but was ${show(actual)}`,
      msg,
    );
  }
}

/** Fails unless `actual > expected`. */
export function assertGreater<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual > expected)) raise(`Expect ${show(actual)} > ${show(expected)}`, msg);
}

/** Fails unless `actual >= expected`. */
export function assertGreaterOrEqual<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual >= expected)) raise(`Expect ${show(actual)} >= ${show(expected)}`, msg);
}

/** Fails unless `actual < expected`. */
export function assertLess<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual < expected)) raise(`Expect ${show(actual)} < ${show(expected)}`, msg);
}

/** Fails unless `actual <= expected`. */
export function assertLessOrEqual<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual <= expected)) raise(`Expect ${show(actual)} <= ${show(expected)}`, msg);
}

/** Fails unless `error` is an Error, of the class and with the text if given. */
export function assertIsError<E extends Error = Error>(
  error: unknown,
  // deno-lint-ignore no-explicit-any
  ErrorClass?: abstract new (...args: any[]) => E,
  msgMatches?: string | RegExp,
  msg?: string,
): asserts error is E {
  if (!(error instanceof Error)) {
    raise(`Expected "error" to be an Error object, but was ${show(error)}`, msg);
  }
  errorMatches(error, ErrorClass, typeof msgMatches === "string" ? msgMatches : undefined, msg);
  if (msgMatches instanceof RegExp) assertMatch(error.message, msgMatches, msg);
}

/** Fails unless the call throws. */
export function assertThrows(fn: () => unknown, msg?: string): unknown;
/** Fails unless the call throws an error of the class whose message includes the text. */
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  // deno-lint-ignore no-explicit-any
  ErrorClass: abstract new (...args: any[]) => E,
  msgIncludes?: string,
  msg?: string,
): E;
export function assertThrows(
  fn: () => unknown,
  classOrMsg?: AnyConstructor | string,
  msgIncludes?: string,
  msg?: string,
): unknown {
  const [ErrorClass, note] = typeof classOrMsg === "string"
    ? [undefined, classOrMsg]
    : [classOrMsg, msg];
  try {
    fn();
  } catch (error) {
    errorMatches(error, ErrorClass, msgIncludes, note);
    return error;
  }
  raise("Expected function to throw", note);
}

/** Fails unless the promise rejects. */
export function assertRejects(fn: () => PromiseLike<unknown>, msg?: string): Promise<unknown>;
/** Fails unless the promise rejects with an error of the class whose message includes the text. */
export function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  // deno-lint-ignore no-explicit-any
  ErrorClass: abstract new (...args: any[]) => E,
  msgIncludes?: string,
  msg?: string,
): Promise<E>;
export async function assertRejects(
  fn: () => PromiseLike<unknown>,
  classOrMsg?: AnyConstructor | string,
  msgIncludes?: string,
  msg?: string,
): Promise<unknown> {
  const [ErrorClass, note] = typeof classOrMsg === "string"
    ? [undefined, classOrMsg]
    : [classOrMsg, msg];
  let promise: PromiseLike<unknown>;
  try {
    promise = fn();
  } catch (error) {
    raise(`Function throws when expected to reject: ${show(error)}`, note);
  }
  try {
    await promise;
  } catch (error) {
    errorMatches(error, ErrorClass, msgIncludes, note);
    return error;
  }
  raise("Expected function to reject", note);
}

/** Fails. */
export function fail(msg?: string): never {
  throw new AssertionError(msg === undefined ? "Failed assertion." : `Failed assertion: ${msg}`);
}

/** Fails, for code that must not be reached. */
export function unreachable(reason?: string): never {
  throw new AssertionError(reason ?? "Unreachable.");
}

/** Fails, for code that is yet to be written. */
export function unimplemented(msg?: string): never {
  throw new AssertionError(msg === undefined ? "Unimplemented." : `Unimplemented: ${msg}`);
}
