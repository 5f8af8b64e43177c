import type { ServerResponse } from 'node:http';
import type { z } from 'zod';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** What a path answers with, by status; null is an answer without a body. */
export type Answers = Record<number, z.ZodType | null>;

/** 'project' and 'name' of '/projects/:project/servers/:name'. */
type ParameterOf<Path extends string> = Path extends `${infer Head}/${infer Tail}`
  ? ParameterOf<Head> | ParameterOf<Tail>
  : Path extends `:${infer Name}`
    ? Name
    : never;

type Parsed<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;

/** What a handler is given: everything has been checked. */
interface Context<Parameter extends string, Query, Body> {
  params: Record<Parameter, string>;
  query: Query;
  body: Body;
  /** The body as it came, where the route takes it so. */
  text: string;
  /** The only version that may be changed, where the client said one. */
  ifVersion: number | undefined;
  /** Whoever asked has gone. */
  signal: AbortSignal;
}

/** JSON that is sent as it is. */
interface RawReply {
  status: number;
  json: string;
}

export type Reply =
  | { status: number; body: unknown; headers?: Record<string, string> }
  | RawReply
  | { stream: (response: ServerResponse) => void };

/** One of the answers that the route says it gives. */
type Promised<Given extends Answers> =
  | {
      [Status in keyof Given & number]: {
        status: Status;
        body: Given[Status] extends z.ZodType ? z.input<Given[Status]> : undefined;
        headers?: Record<string, string>;
      };
    }[keyof Given & number]
  | (RawReply & { status: keyof Given & number })
  | { stream: (response: ServerResponse) => void };

interface Definition<Path extends string, Query, Body, Given extends Answers> {
  method: Method;
  /** Below /api/v1, with :parameters. */
  path: Path;
  operationId: string;
  summary: string;
  query?: Query;
  body?: Body;
  /** What a body looks like that is handed over as it came. */
  text?: z.ZodType;
  /** Whether `If-Match` is heeded. */
  isConditional?: boolean;
  /** Whether the answer is a stream of events that goes on: always, or where that is asked for. */
  isStream?: boolean | 'on demand';
  answers: Given;
  handle(context: Context<ParameterOf<Path>, Parsed<Query>, Parsed<Body>>): Promise<Promised<Given>>;
}

/** A row of the table of routes, whatever its handler takes. */
export interface Route
  extends Omit<Definition<string, z.ZodObject | undefined, z.ZodType | undefined, Answers>, 'handle'> {
  handle(context: Context<string, unknown, unknown>): Promise<Reply>;
}

/** A row of the table. Its handler gets what its schemas let through, and must answer as it says. */
export function route<
  Path extends string,
  Given extends Answers,
  Query extends z.ZodObject | undefined = undefined,
  Body extends z.ZodType | undefined = undefined,
>(definition: Definition<Path, Query, Body, Given>): Route {
  return definition as unknown as Route;
}
