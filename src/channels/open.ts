import type { ServerTransport } from '../config.ts';
import type { Channel, Receiver } from './channel.ts';
import type { ChildRecord } from './stdio.ts';

export type OpenChannel = (receiver: Receiver) => Channel;

/**
 * The way to open a channel of the kind that a server is reached by. Variables are resolved already. Each kind is
 * loaded with the first server of that kind.
 */
export async function channelOpener(
  transport: ServerTransport,
  maxMessageBytes: number,
  children: ChildRecord,
): Promise<OpenChannel> {
  switch (transport.type) {
    case 'stdio': {
      const { StdioChannel } = await import('./stdio.ts');
      return (receiver) => new StdioChannel(transport, maxMessageBytes, children, receiver);
    }
    case 'http': {
      const { HttpChannel } = await import('./http.ts');
      return (receiver) => new HttpChannel(transport, maxMessageBytes, receiver);
    }
    case 'sse': {
      const { SseChannel } = await import('./sse.ts');
      return (receiver) => new SseChannel(transport, maxMessageBytes, receiver);
    }
  }
}
