import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeper.DigestType;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/**
 * BookKeeper's own client, as lines of stdin say. Arguments: the metadata service's URI, and the ack quorum of three.
 *
 * <pre>
 * create            makes a ledger, and writes to it from then on:    create ID, or create failed
 * add NUMBER TEXT   adds TEXT as an entry:                            added NUMBER, or failed NUMBER
 * read ID           another client recovers that and reads all of it:   entry TEXT ..., then read COUNT, or read failed.
 *                   What all bookies say they have not is left out
 * </pre>
 */
public class Ledger {
    private static final byte[] PASSWORD = new byte[0];
    private static final int BOOKIES = 3;

    public static void main(String[] arguments) throws Exception {
        ClientConfiguration settings = new ClientConfiguration();
        settings.setMetadataServiceUri(arguments[0]);
        settings.setUseV2WireProtocol(false);
        BookKeeper client = null;
        LedgerHandle ledger = null;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 3);
            if (words[0].equals("create")) {
                try {
                    if (client == null) {
                        client = new BookKeeper(settings);
                    }
                    ledger = client.createLedger(
                            BOOKIES, BOOKIES, Integer.parseInt(arguments[1]), DigestType.CRC32C, PASSWORD);
                    say("create " + ledger.getId());
                } catch (Exception error) {
                    say("create failed " + error);
                }
            } else if (words[0].equals("add")) {
                ledger.asyncAddEntry(words[2].getBytes(), (code, of, entry, number) ->
                        say((code == BKException.Code.OK ? "added " : "failed ") + number), words[1]);
            } else {
                new Thread(() -> read(settings, Long.parseLong(words[1]))).start();
            }
        }
    }

    private static void read(ClientConfiguration settings, long id) {
        try (BookKeeper other = new BookKeeper(settings);
                LedgerHandle ledger = other.openLedger(id, DigestType.CRC32C, PASSWORD)) {
            long count = 0;
            for (long number = 0; number <= ledger.getLastAddConfirmed(); number++) {
                try {
                    say("entry " + new String(ledger.readEntries(number, number).nextElement().getEntry()));
                    count++;
                } catch (BKException.BKNoSuchEntryException error) {
                    // every bookie that may have it says that it has not
                }
            }
            say("read " + count);
        } catch (Exception error) {
            say("read failed " + error);
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }
}
