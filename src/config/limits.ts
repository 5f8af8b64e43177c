export interface Limits {
  cpus: number;
  memoryBytes: number;
  diskBytes: number;
  pids: number;
}

const KILOBYTE = 1024;
const MEGABYTE = 1024 ** 2;

export const defaultLimits: Limits = {
  cpus: 0.5,
  memoryBytes: 512 * MEGABYTE,
  diskBytes: 1024 * MEGABYTE,
  pids: 128,
};

export interface LimitsInput {
  cpu?: unknown;
  memory?: unknown;
  disk?: unknown;
  pids?: unknown;
}

export interface LimitProblem {
  path: readonly [keyof LimitsInput];
  /** Follows the field's name: "must be …". */
  message: string;
}

interface Field {
  /** Undefined if the value cannot be parsed. */
  read(value: unknown): number | undefined;
  /** Less than `least` is too little to run; `most` rejects mistakes. */
  least: number;
  most: number;
  rule: string;
}

const bytes = { read: readBytes, least: 16 * MEGABYTE, most: Number.MAX_SAFE_INTEGER };
const fields = {
  cpu: {
    read: readCores,
    least: 0.05,
    most: 1_024,
    rule: 'must be a number of cores from 0.05 to 1024, such as "0.5" or "500m"',
  },
  memory: { ...bytes, rule: 'must be at least 16 MB: "512M", "1.5G", "512Mi", or a number of bytes' },
  disk: { ...bytes, rule: 'must be at least 16 MB: "512M", "1.5G", "512Mi", or a number of bytes' },
  pids: {
    read: (value) => readWhole(typeof value === 'string' ? readDecimal(value) : value),
    least: 8,
    most: 4_194_304,
    rule: 'must be a whole number of processes and threads from 8 to 4194304, such as 128',
  },
} satisfies Record<keyof LimitsInput, Field>;

/** Missing limits become the defaults. */
export function parseLimits(input: LimitsInput): { limits: Limits } | { problems: LimitProblem[] } {
  const problems: LimitProblem[] = [];
  const read = (name: keyof LimitsInput, usual: number): number => {
    const value = input[name];
    if (value === undefined) return usual;
    const field: Field = fields[name];
    const amount = field.read(value) ?? Number.NaN;
    if (amount >= field.least && amount <= field.most) return amount;
    problems.push({ path: [name], message: `${field.rule}, and not ${shown(value)}` });
    return usual;
  };
  const limits = {
    cpus: read('cpu', defaultLimits.cpus),
    memoryBytes: read('memory', defaultLimits.memoryBytes),
    diskBytes: read('disk', defaultLimits.diskBytes),
    pids: read('pids', defaultLimits.pids),
  };
  return problems.length > 0 ? { problems } : { limits };
}

/** Formats limits so that they parse to the same values. */
export function describeLimits({ cpus, memoryBytes, diskBytes, pids }: Limits) {
  return { cpu: String(cpus), memory: describeBytes(memoryBytes), disk: describeBytes(diskBytes), pids };
}

/** `500m` is 500 thousandths of a core. */
function readCores(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string') return undefined;
  return value.endsWith('m') ? divided(readDecimal(value.slice(0, -1)), 1_000) : readDecimal(value);
}

/** As in Docker, M, MB, Mi and MiB all mean 1,024 kilobytes. */
function readBytes(value: unknown): number | undefined {
  if (typeof value !== 'string') return readWhole(value);
  const found = /^([\d.]+)\s?(?:([kmgt])(?:i?b)?|([kmgt])i|b)?$/i.exec(value);
  const amount = readDecimal(found?.[1] ?? '');
  const unit = (found?.[2] ?? found?.[3] ?? '').toLowerCase();
  const size = unit === '' ? 1 : KILOBYTE ** ('kmgt'.indexOf(unit) + 1);
  return amount === undefined ? undefined : Math.round(amount * size);
}

function readWhole(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

function readDecimal(text: string): number | undefined {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}

function divided(amount: number | undefined, by: number): number | undefined {
  return amount === undefined ? undefined : amount / by;
}

/** Uses the largest unit that gives a whole number. */
function describeBytes(amount: number): string {
  let rest = amount;
  let units = 'KMGT';
  let unit = '';
  while (units !== '' && rest % KILOBYTE === 0) {
    rest /= KILOBYTE;
    unit = units[0]!;
    units = units.slice(1);
  }
  return `${rest}${unit}`;
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 100);
}
