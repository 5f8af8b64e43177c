import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultLimits, describeLimits, type LimitsInput, parseLimits } from './limits.ts';

const MB = 1024 ** 2;

function limitsOf(input: LimitsInput) {
  const parsed = parseLimits(input);
  if ('problems' in parsed) throw new Error(JSON.stringify(parsed.problems));
  return parsed.limits;
}

function problemsOf(input: LimitsInput): string[] {
  const parsed = parseLimits(input);
  return 'problems' in parsed ? parsed.problems.map(({ path, message }) => `${path} ${message}`) : [];
}

describe('limits', () => {
  it('default to half a core, 512 MB of memory and 1 GB of disk', () => {
    expect(limitsOf({})).toEqual({ cpus: 0.5, memoryBytes: 512 * MB, diskBytes: 1024 * MB, pids: 128 });
    expect(describeLimits(defaultLimits)).toEqual({ cpu: '0.5', memory: '512M', disk: '1G', pids: 128 });
  });

  it('can be set independently', () => {
    expect(limitsOf({ cpu: '1', memory: '1G' })).toEqual({
      ...defaultLimits,
      cpus: 1,
      memoryBytes: 1024 * MB,
    });
  });

  it.each([
    ['0.5', 0.5],
    [0.5, 0.5],
    ['500m', 0.5],
    ['1500m', 1.5],
    ['2', 2],
    [0.05, 0.05],
  ])('accept %j as cores', (cpu, cpus) => {
    expect(limitsOf({ cpu }).cpus).toBe(cpus);
  });

  it.each([
    ['512M', 512 * MB],
    ['512m', 512 * MB],
    ['512MB', 512 * MB],
    ['512Mi', 512 * MB],
    ['512 MiB', 512 * MB],
    ['1G', 1024 * MB],
    ['1.5g', 1536 * MB],
    ['1t', 1024 ** 2 * MB],
    ['16384k', 16 * MB],
    ['16777216', 16 * MB],
    ['16777216b', 16 * MB],
    [16_777_217, 16 * MB + 1],
  ])('accept %j as bytes', (text, bytes) => {
    expect(limitsOf({ memory: text }).memoryBytes).toBe(bytes);
    expect(limitsOf({ disk: text }).diskBytes).toBe(bytes);
  });

  it.each([8, 4_194_304, '128'])('accept %j as processes', (pids) => {
    expect(limitsOf({ pids }).pids).toBe(Number(pids));
  });

  it.each<LimitsInput>([
    ...['', 'half', '0.5 cores', '-1', '1e3', '0.01', '49m', 'm', '2000', ' 1'].map((cpu) => ({ cpu })),
    ...[0, -1, Number.NaN, Number.POSITIVE_INFINITY, null, true, []].map((cpu) => ({ cpu })),
    ...['', 'much', '512X', '512ib', 'M', '-1G', '15M', '1..5G', '1.G', '1e9', '9999999999T'].map(
      (memory) => ({ memory }),
    ),
    ...[1, 1.5, 16_777_216.5, Number.NaN, null, {}].map((disk) => ({ disk })),
    ...[7, 8.5, '8.5', 'many', 4_194_305, null].map((pids) => ({ pids })),
  ])('reject %j', (input) => {
    expect(problemsOf(input)).toHaveLength(1);
  });

  it('report the allowed range of every invalid field, with an example', () => {
    expect(problemsOf({ cpu: 'half', memory: '1M', disk: 'all', pids: 1 })).toEqual([
      'cpu must be a number of cores from 0.05 to 1024, such as "0.5" or "500m", and not "half"',
      'memory must be at least 16 MB: "512M", "1.5G", "512Mi", or a number of bytes, and not "1M"',
      'disk must be at least 16 MB: "512M", "1.5G", "512Mi", or a number of bytes, and not "all"',
      'pids must be a whole number of processes and threads from 8 to 4194304, such as 128, and not 1',
    ]);
  });

  it('survive formatting and parsing unchanged', () => {
    const bytes = fc.oneof(
      fc.integer({ min: 16 * MB, max: Number.MAX_SAFE_INTEGER }),
      fc.integer({ min: 16, max: 1_000_000 }).map((megabytes) => megabytes * MB),
    );
    const limits = fc.record({
      cpus: fc.oneof(
        fc.double({ min: 0.05, max: 1_024, noNaN: true }),
        fc.integer({ min: 50, max: 1_024_000 }).map((thousandths) => thousandths / 1_000),
      ),
      memoryBytes: bytes,
      diskBytes: bytes,
      pids: fc.integer({ min: 8, max: 4_194_304 }),
    });
    fc.assert(
      fc.property(limits, (each) => {
        expect(limitsOf(describeLimits(each))).toEqual(each);
      }),
    );
  });

  it('never exceed the allowed range', () => {
    const anything = fc.oneof(
      fc.anything(),
      fc.stringMatching(/^-?\d{0,17}\.?\d{0,3} ?[kmgtibKMGTIB]{0,3}$/),
    );
    const inputs = fc.record(
      { cpu: anything, memory: anything, disk: anything, pids: anything },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(inputs, (input) => {
        const parsed = parseLimits(input);
        if ('problems' in parsed) {
          expect(parsed.problems.length).toBeGreaterThan(0);
          return;
        }
        const { cpus, memoryBytes, diskBytes, pids } = parsed.limits;
        expect(cpus).toBeGreaterThanOrEqual(0.05);
        expect(cpus).toBeLessThanOrEqual(1_024);
        for (const bytes of [memoryBytes, diskBytes]) {
          expect(Number.isSafeInteger(bytes)).toBe(true);
          expect(bytes).toBeGreaterThanOrEqual(16 * MB);
        }
        expect(Number.isSafeInteger(pids)).toBe(true);
        expect(pids).toBeGreaterThanOrEqual(8);
      }),
    );
  });
});
