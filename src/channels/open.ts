import type { ServerTransport } from '../config.ts';
import type { Channel, Receiver } from './channel.ts';
import type { Hosts } from './hosted.ts';
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
  hosts: Hosts,
): Promise<OpenChannel> {
  switch (transport.type) {
    case 'stdio': {
      const { StdioChannel } = await import('./stdio.ts');
      await children.turn();
      return (receiver) => new StdioChannel(transport, maxMessageBytes, children, receiver);
    }
    case 'http': {
      const { HttpChannel } = await import('./http.ts');
      return (receiver) => new HttpChannel(transport, maxMessageBytes, receiver);
    }
    case 'hosted': {
      const attachment = await hosts.attach(transport.id);
      if (attachment.kind === 'url') {
        const { HttpChannel } = await import('./http.ts');
        const { url, ended } = attachment;
        return (receiver) => {
          const channel = new HttpChannel({ url, headers: {} }, maxMessageBytes, receiver);
          // An instance may outlive many channels: it must not keep them until it ends.
          const weak = new WeakRef(channel);
          void ended.then((error) => weak.deref()?.serverEnded(error));
          return channel;
        };
      }
      const { HostedChannel } = await import('./hosted.ts');
      return (receiver) => new HostedChannel(attachment, maxMessageBytes, receiver);
    }
    case 'sse': {
      const { SseChannel } = await import('./sse.ts');
      return (receiver) => new SseChannel(transport, maxMessageBytes, receiver);
    }
  }
}
